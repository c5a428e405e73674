package members

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/bench/report"
)

// TestMeter counts what goes over a real connection.
func TestMeter(t *testing.T) {
	var m Meter
	m.Datagram(100)
	m.Datagram(0)
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	c := &meteredConn{here, &m}
	for _, n := range []int{1, SegmentPayload, SegmentPayload + 1} {
		if _, err := c.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	_ = here.Close()
	if _, err := c.Write([]byte{1}); err == nil {
		t.Fatal("a closed connection takes a byte")
	}
	want := Traffic{
		Datagrams: 2, DatagramBytes: 100 + 2*DatagramHeader,
		Writes: 3, WriteBytes: 1 + 2*SegmentPayload + 1 + 4*SegmentHeader,
	}
	if got := m.Read(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if d := want.Sub(Traffic{Datagrams: 1, WriteBytes: 1}); d.Add(Traffic{Datagrams: 1, WriteBytes: 1}) != want || want.Bytes() != want.DatagramBytes+want.WriteBytes {
		t.Errorf("%+v", d)
	}
}

// TestContest plays a small one of Tributary against itself: all is measured,
// and nobody is taken for dead who is not.
func TestContest(t *testing.T) {
	c := Contest{Nodes: 16, Seeds: 2, Settle: 0, Window: time.Second, Rounds: 1, Patience: time.Minute}
	var lines []string
	scores, err := c.Play(t.Context(), func(l string) { lines = append(lines, l) }, Tributary{Monitors: true}, Tributary{Key: make([]byte, 32), Encrypt: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scores {
		if s.boot() <= 0 || s.last(Killed) <= 0 || s.last(Silent) <= 0 || s.Traffic.Datagrams == 0 {
			t.Errorf("%+v", s)
		}
		for how, all := range s.Known {
			if len(all) != c.Rounds || all[0].First > all[0].Median || all[0].Median > all[0].Last {
				t.Errorf("%s: %+v", how, all)
			}
		}
	}
	if len(lines) < 7 {
		t.Errorf("progress: %q", lines)
	}
}

// TestMemberlist boots the peer, and ends it.
func TestMemberlist(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, took, err := Boot(ctx, Memberlist{}, 8, 2, 201)
	if err != nil {
		t.Fatal(err)
	}
	if sum, nodes := r.Traffic(); took <= 0 || nodes != 8 || sum.Bytes() == 0 {
		t.Errorf("%v, %d nodes, %+v", took, nodes, sum)
	}
	r.Close()
	if r.Wrong() != 0 {
		t.Errorf("%d false deaths", r.Wrong())
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"rows":     func(c *Config) { c.Rows = []string{"speed"} },
		"nodes":    func(c *Config) { c.Nodes = 8 },
		"real":     func(c *Config) { c.Contest.Nodes = 2 },
		"seeds":    func(c *Config) { c.Contest.Seeds = 0 },
		"window":   func(c *Config) { c.Contest.Window = 0 },
		"rounds":   func(c *Config) { c.Contest.Rounds = 1000 },
		"patience": func(c *Config) { c.Contest.Patience = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrRig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSimulatedRows measures the cheap rows with a small zone: what is asked of
// 2,048 nodes is reached by 64.
func TestSimulatedRows(t *testing.T) {
	c := DefaultConfig()
	c.Nodes, c.Rows = 64, []string{"boot", "leave-join", "hpm", "idle", "memory"}
	var rows []Row
	err := c.Measure(t.Context(), func(string) {}, func(r Row) error { rows = append(rows, r); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 7 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if !r.Reached || r.Measured == "" || r.Took <= 0 {
			t.Errorf("%+v", r)
		}
	}
	stop := errors.New("no more")
	if err := c.Measure(t.Context(), func(string) {}, func(Row) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
}

func TestVerdict(t *testing.T) {
	score := func(boot, last time.Duration, rate float64) Score {
		k := []Knowledge{{Last: last}, {Last: time.Hour}, {Last: 0}}
		return Score{Boots: []time.Duration{time.Hour, boot}, Rate: rate, Known: map[Blow][]Knowledge{Killed: k, Silent: k}}
	}
	peer := score(4*time.Second, 10*time.Second, 200)
	for _, test := range []struct {
		own  Score
		want string
	}{
		{score(2*time.Second, time.Second, 200), "++++"},
		{score(2*time.Second+1, time.Second, 200), "+++-"},
		{score(2*time.Second, time.Second+1, 201), "---+"},
	} {
		got := ""
		for _, r := range ContestRows(DefaultContest(), test.own, peer) {
			got += map[bool]string{true: "+", false: "-"}[r.Reached]
		}
		if got != test.want {
			t.Errorf("%+v: %s, want %s", test.own, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	rows := []Row{
		{Key: "a", What: "first", Asked: "<= 1", Measured: "1", Reached: true, Figures: map[string]float64{"x_ms": 1}, Notes: []string{"so it is"}},
		{Key: "b", What: "second", Asked: "none", Measured: "2"},
	}
	var text, lines bytes.Buffer
	for _, lined := range []bool{false, true} {
		out := &text
		if lined {
			out = &lines
		}
		table := Table{report.Rows[Row]{Out: out, JSON: lined}}
		for _, r := range rows {
			if err := table.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if missed, err := table.Close(); missed != 1 || err != nil {
			t.Errorf("%d missed, %v", missed, err)
		}
	}
	const want = "ROW  WHAT    ASKED  MEASURED  \n" +
		"a    first   <= 1   1         reached\n" +
		"b    second  none   2         NOT reached\n" +
		"a: so it is\n"
	if text.String() != want {
		t.Errorf("got\n%q\nwant\n%q", text.String(), want)
	}
	var r Row
	first, _, _ := strings.Cut(lines.String(), "\n")
	if err := json.Unmarshal([]byte(first), &r); err != nil || r.Key != "a" || r.Figures["x_ms"] != 1 {
		t.Errorf("%s: %v", first, err)
	}
	if got := thousands(1234567.8); got != "1 234 568" {
		t.Errorf("%q", got)
	}
}
