package rails

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// played has both ends of a connection do what requests ask for.
func played(t *testing.T, ends [2]net.Conn, requests ...Request) (replies [2][]Reply) {
	t.Helper()
	var all sync.WaitGroup
	for side, conn := range ends {
		all.Go(func() {
			var in, out bytes.Buffer
			for _, r := range requests {
				_ = json.NewEncoder(&in).Encode(r)
			}
			err := Play(t.Context(), &in, &out, side, func(ready func() error) (Port, error) { return plainPort{conn}, ready() })
			if err != nil {
				t.Errorf("side %d: %v", side, err)
			}
			lines := json.NewDecoder(&out)
			if line, err := out.ReadBytes('\n'); err != nil || !bytes.Equal(line, ready) {
				t.Errorf("side %d begins with %q, %v", side, line, err)
			}
			for {
				var r Reply
				if lines.Decode(&r) != nil {
					return
				}
				replies[side] = append(replies[side], r)
			}
		})
	}
	all.Wait()
	return replies
}

func TestPlay(t *testing.T) {
	a, b := net.Pipe()
	now := time.Now().UnixNano()
	replies := played(t, [2]net.Conn{a, b},
		Request{What: pingpong, Bytes: 8, Warmup: 3, Iterations: 5, Window: 1, Limit: time.Minute},
		Request{What: stream, Bytes: 1000, Iterations: 7, Window: 3, Start: now, Limit: time.Minute},
		Request{What: stream, Bytes: 8, Lasting: time.Millisecond, Window: 2, Start: now, Limit: time.Minute},
		Request{What: "dance", Bytes: 8, Window: 1, Limit: time.Minute},
		Request{What: stream, Bytes: 7, Window: 1, Limit: time.Minute},
	)
	for side, all := range replies {
		if len(all) != 5 || all[3].Error == "" || all[4].Error == "" {
			t.Fatalf("side %d: %+v", side, all)
		}
		for i, r := range all[:3] {
			if r.Error != "" {
				t.Errorf("side %d, request %d: %s", side, i, r.Error)
			}
		}
	}
	if r := replies[Asker][0]; !r.Right || len(r.Times) != 5 {
		t.Errorf("%+v", r)
	}
	for i, want := range map[int]uint64{1: 7, 2: replies[Asker][2].Sent} {
		r := replies[Answerer][i]
		r.Ledger.End(replies[Asker][i].Sent)
		if r.Ledger.Arrived != want || want == 0 || !r.Ledger.Exact() || len(r.Meter.Bins) == 0 {
			t.Errorf("request %d: %v, %+v", i, r.Ledger, r.Meter)
		}
	}
}

// TestPlayEnds expects that a message that never comes ends with the limit, and that
// requests that are none end the process.
func TestPlayEnds(t *testing.T) {
	a, _ := net.Pipe()
	r := answer(t.Context(), plainPort{a}, Answerer, Request{What: stream, Bytes: 8, Window: 1, Limit: time.Millisecond})
	if !strings.Contains(r.Error, "1ms") {
		t.Errorf("%+v", r)
	}
	err := Play(context.Background(), strings.NewReader("x\n"), io.Discard, Asker, func(func() error) (Port, error) { return plainPort{a}, nil })
	if err == nil {
		t.Error("a request that is none is taken")
	}
}

func TestRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Turn: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "turn")), Limit: time.Hour}
		c.Fabric.Rates = rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1000, 200_000_000}), 1, 3).Draw(t, "rates")
		bytes := rapid.IntRange(MinMessage, MaxMessage).Draw(t, "bytes")
		for _, r := range []Request{c.pingpong(bytes), c.stream(bytes)} {
			if r.Iterations < 3 || r.Warmup < 1 || r.Window < 1 || r.Window > r.Iterations || r.Limit <= 0 {
				t.Fatalf("%+v", r)
			}
		}
	})
}

func TestCSV(t *testing.T) {
	rows := []Row{
		{Measure: Latency, Contestant: "tcp", Rates: []int64{1, 2}, Bytes: 8, Median: 1.5},
		{Measure: Cuts, Contestant: "tcp", Cut: &Cut{Schedule: "rail0 down@1s", Back: -1}},
	}
	for i := range rows {
		if got := rows[i].CSV(); len(got) != len(Header) {
			t.Errorf("%d columns, the header has %d: %q", len(got), len(Header), got)
		}
	}
	var b strings.Builder
	if err := WriteCSV(&b, rows); err != nil || strings.Count(b.String(), "\n") != 3 {
		t.Errorf("%q, %v", b.String(), err)
	}
	for _, part := range [][]Row{rows[:1], rows[1:], nil} {
		b.Reset()
		if err := WriteText(&b, part); err != nil || strings.Count(b.String(), "\n") != 1+len(part) {
			t.Errorf("%q, %v", b.String(), err)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Config{Kinds: []string{"tcp"}, Measure: Latency, Sizes: []int{8}, Contestants: []string{"tcp"}, Rounds: 1, Turn: 1, Limit: 2}
	good.Fabric.Prefix, good.Fabric.Hosts, good.Fabric.Rates = "x", 2, []int64{0, 0}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for i, change := range []func(*Config){
		func(c *Config) { c.Kinds = []string{"tcp", "udp", "tcp"} }, func(c *Config) { c.Kinds = []string{"ipx"} },
		func(c *Config) { c.Measure = "weight" }, func(c *Config) { c.Sizes = []int{0} }, func(c *Config) { c.Contestants = nil },
		func(c *Config) { c.Rounds = 0 }, func(c *Config) { c.Limit = 1 }, func(c *Config) { c.Measure = Cuts }, func(c *Config) { c.Fabric.Hosts = 0 },
	} {
		c := good
		if change(&c); c.Validate() == nil {
			t.Errorf("change %d is taken: %+v", i, c)
		}
	}
	if !slices.Contains(Contestants(), Plain) {
		t.Error("no baseline")
	}
}
