package neighbor

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestForgedNeighbors: 10,000 forged neighbours on a port leave the true one where it is,
// are counted, and make the port send no more than its credit.
func TestForgedNeighbors(t *testing.T) {
	const forged = 10_000
	trial := newTrial(Config{})
	trial.do("set 1", "hear 1 true")
	var sent int
	for i := range forged {
		if i%1000 == 0 {
			trial.do("hear 1 true")
			sent += plain(trial.do("pass 100ms"))
		}
		sent += plain(trial.do(fmt.Sprintf("hear 1 forged%d role=switch ttl=65535", i)))
	}
	all := trial.c.Neighbors(1)
	counters, _ := trial.c.Counters(1)
	if len(all) != MostNeighbors || all[0].SystemName != "true" || counters.Crowded != forged-MostNeighbors+1 {
		t.Errorf("%d neighbours, the first is %q, %+v", len(all), all[0].SystemName, counters)
	}
	if most := 2*int(time.Duration(trial.now)/DefaultInterval) + maxCredit; sent > most {
		t.Errorf("%d announcements in %v, want at most %d", sent, time.Duration(trial.now), most)
	}
	// The forger falls silent: who comes later has its place after a while.
	trial.do("skip 60s", "hear 1 true", "hear 1 late", "hear 1 late")
	if all := trial.c.Neighbors(1); len(all) != MostNeighbors || all[len(all)-1].SystemName != "late" {
		t.Errorf("%d neighbours, the last is %q", len(all), all[len(all)-1].SystemName)
	}
}

// plain returns how many announcements without a request or a response there are.
func plain(out string) int { return strings.Count(out, "announce") - strings.Count(out, " with ") }

// TestForgedFirst: neighbours that were forged before the true one comes keep it out for
// StaleAfter at most, whatever TTL they claim and however often they were heard.
func TestForgedFirst(t *testing.T) {
	trial := newTrial(Config{})
	trial.do("set 1")
	for i := range 300 {
		trial.do(fmt.Sprintf("hear 1 forged%d ttl=65535", i%100))
	}
	for range int(StaleAfter / (30 * time.Second)) {
		trial.do("hear 1 true", "skip 30s")
	}
	trial.do("hear 1 true")
	if all := trial.c.Neighbors(1); all[len(all)-1].SystemName != "true" {
		t.Errorf("the last is %q", all[len(all)-1].SystemName)
	}
}

// TestFlappingNeighbor: somebody who comes and goes, or whose address changes, with every
// frame has the port ask no oftener than at the beginning, and report in pauses.
func TestFlappingNeighbor(t *testing.T) {
	trial := newTrial(Config{})
	trial.do("set 1")
	var requests, changes int
	for i := range 1000 {
		out := trial.do("hear 1 b role=switch mac="+fmt.Sprint(i%2+8), "pass 500us", "hear 1 b role=switch ttl=0", "pass 500us")
		requests += strings.Count(out, "request")
		changes += strings.Count(out, "changed")
	}
	most := int(time.Duration(trial.now)/firstInterval) + 1
	if requests > most || changes > most {
		t.Errorf("%d requests and %d changes in %v, want at most %d", requests, changes, time.Duration(trial.now), most)
	}
}

// TestConfig: an interval that will not do is named, and the TTL is longer than it.
func TestConfig(t *testing.T) {
	for _, d := range []time.Duration{-1, time.Millisecond, 2 * time.Hour} {
		if _, err := New(Config{Interval: d}); err == nil || !strings.Contains(err.Error(), d.String()) {
			t.Errorf("%v: %v", d, err)
		}
	}
	for d, want := range map[time.Duration]uint16{0: 3, 10 * time.Millisecond: 2, time.Second: 5, 30 * time.Second: 121, time.Hour: 14401} {
		if ttl := (Config{Interval: d}).TTL(); ttl != want {
			t.Errorf("%v: TTL %d, want %d", d, ttl, want)
		}
	}
}
