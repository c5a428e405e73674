package report

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/bench/timing"
)

// measured is a measurement with numbers that are easy to reckon with.
func measured() Measurement {
	return Measurement{
		Kind: KindMeasurement, Fabric: Fabric{Hosts: 8, Switches: 4, Rate: 200e6}, Groups: 1, Pace: "steady",
		Row: timing.Row{
			Ranks: 8, Type: "float32", Bytes: 1 << 20, Iterations: 10, Transport: "offload", Right: true,
			Tail: timing.Tail{Min: 1000, Median: 2000, P90: 2500, P99: 5000, P999: 6000, Max: 7000},
		},
		Elapsed: time.Second,
		Hosts: gauge.Reading{
			User: 10 * time.Millisecond, System: 30 * time.Millisecond, Allocations: 8 * 10 * 733,
			Traffic: gauge.Traffic{PacketsIn: 40000, PacketsOut: 40000, ReadCalls: 100, WriteCalls: 60},
		},
		Switches: gauge.Reading{User: 5 * time.Millisecond, System: 15 * time.Millisecond, Traffic: gauge.Traffic{PacketsIn: 80000}},
		Machine:  gauge.Machine{Soft: 20 * time.Millisecond, Idle: 50 * time.Millisecond},
	}
}

func TestMeasurement(t *testing.T) {
	m := measured()
	want := m.Row.String() + ",0,1000.0,3000.0,500.0,1500.0,2000.0,5000.0,5864.0,0.0,1.0000,0.0000,1000.0,1000.0,2.0,"
	if got := m.String(); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if strings.Count(Header, ",") != strings.Count(want, ",") || !strings.HasPrefix(Header, timing.Header) {
		t.Errorf("the header is %s", Header)
	}
	words := m.Words()
	for _, part := range []string{"99th is 2.5 medians", "hosts 4000 us (3000 in the kernel)", "(1.0000 a chunk and host)", "packets 1000, 1000 a MiB; system calls 2, ? a MiB"} {
		if !strings.Contains(words, part) {
			t.Errorf("no %q in\n%s", part, words)
		}
	}
	if strings.Contains(words, "DISTURBED") {
		t.Errorf("nobody else was there:\n%s", words)
	}
	m.Machine.User = 200 * time.Millisecond // of 270, of which 60 are the hosts' and switches'
	if x, want := m.Strangers(), 140.0/270; math.Abs(x-want) > 1e-9 || !strings.Contains(m.Words(), "others had 52 % of the processors") {
		t.Errorf("%v, want %v\n%s", x, want, m.Words())
	}
	small := m
	small.Bytes = 8
	if words := small.Words(); !strings.Contains(words, "packets 8000, 8000 an operation; system calls 16, ? an operation") {
		t.Errorf("%s", words)
	}
	m.Groups = 2 // together they did twice as much
	if c := m.HostCost(); c.User != 500 || c.PerChunk != 0.25 {
		t.Errorf("%+v", c)
	}
}

func TestMeasurementIsJSON(t *testing.T) {
	m := measured()
	text, err := json.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	var back Measurement
	if err := json.Unmarshal(text, &back); err != nil || !cmp.Equal(m, back) {
		t.Errorf("%v\n%s", err, cmp.Diff(m, back))
	}
}

// TestGroupShares has two groups at once: the second begins later and ends
// later, so that only a part of each counts.
func TestGroupShares(t *testing.T) {
	const second = int64(time.Second)
	flows := []Flow{
		{Bytes: timing.ChunkBytes * 1000, Spans: []timing.Span{{Begun: 0, Ended: 2 * second}, {Begun: 2 * second, Ended: 4 * second}}},
		{Bytes: timing.ChunkBytes * 3000, Spans: []timing.Span{{Begun: second, Ended: 4 * second}, {Begun: 4 * second, Ended: 7 * second}}},
	}
	// From 1 s to 4 s: 1500 chunks of the first, 3000 of the second.
	const rate = frame * 8 * 2000
	got := GroupShares(flows, rate)
	want := []float64{1500.0 / 3 / 2000, 3000.0 / 3 / 2000}
	for i, w := range want {
		if math.Abs(got[i].Link-w) > 1e-9 {
			t.Errorf("%+v, want %v", got, want)
		}
	}
	if got := GroupShares([]Flow{{Bytes: 8}}, rate); got != nil {
		t.Errorf("of no operations: %v", got)
	}
	for _, s := range GroupShares([]Flow{{Spans: []timing.Span{{Begun: 0, Ended: 1}}}, {Spans: []timing.Span{{Begun: 5, Ended: 6}}}}, rate) {
		if s.Link != 0 {
			t.Errorf("of two that never met: %+v", s)
		}
	}
}

func TestStreamShare(t *testing.T) {
	if s := StreamShare(tcpPayload*500, 2, frame*8*500); math.Abs(s.Link-0.5) > 1e-9 {
		t.Errorf("%+v", s)
	}
	if s := StreamShare(1, 0, 0); s.Link != 0 {
		t.Errorf("%+v", s)
	}
}

func TestJain(t *testing.T) {
	for want, shares := range map[float64][]Share{1: {{"a", 0.3}, {"b", 0.3}, {"c", 0.3}}, 0.25: {{"a", 1}, {"b", 0}, {"c", 0}, {"d", 0}}, 0: {{"a", 0}}} {
		if got := Jain(shares); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", shares, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var shares []Share
		for _, x := range rapid.SliceOfN(rapid.Float64Range(0.001, 1), 1, 9).Draw(t, "shares") {
			shares = append(shares, Share{Link: x})
		}
		if j := Jain(shares); j < 1/float64(len(shares))-1e-9 || j > 1+1e-9 {
			t.Fatalf("%v: %v", shares, j)
		}
	})
}

func compared() Comparison {
	tail := func(median float64) timing.Tail {
		return timing.Tail{Min: median / 2, Median: median, P99: 3 * median, Max: 4 * median}
	}
	return Comparison{
		Kind: KindComparison, Taken: time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC), Processors: 2, Fabric: Fabric{Hosts: 8, Switches: 4, Rate: 200e6},
		Bytes: 16 << 20, Rounds: 3,
		Contestants: []Contestant{
			{Name: timing.Implementation, Iterations: 9, Tail: tail(720e3), Right: true, Transport: "offload", User: 100e3, System: 300e3, Switches: 50e3},
			{Name: "openmpi-ring", Iterations: 3, Tail: tail(1800e3), Right: true, User: 1, System: 1},
			{Name: "gloo-ring", Iterations: 3, Tail: tail(1600e3), Right: true, User: 300e3, System: 700e3},
			{Name: "gloo-bcube", Iterations: 3, Tail: tail(2600e3), Right: false, User: 300e3, System: 100e3},
			{Name: "mpich", Left: "no answer within 1m0s (--limit)\nand so on, \"it\" says"},
		},
	}
}

func TestComparison(t *testing.T) {
	c := compared()
	if own, best, gloo := c.Own(), c.Best(), c.BestOf("gloo"); own.Median != 720e3 || best.Name != "gloo-ring" || gloo.Name != "gloo-ring" {
		t.Errorf("%+v, %+v, %+v", own, best, gloo)
	}
	if r := c.Ratio(); r != 0.45 {
		t.Errorf("ratio %v", r)
	}
	if l, want := c.LinkLimit(), float64(16<<20)/1432*1514*8/200e6*1e6; math.Abs(l-want) > 1e-6 {
		t.Errorf("limit %v, want %v", l, want)
	}
	for i, line := range strings.Split(strings.TrimSpace(c.CSV()), "\n") {
		if strings.Count(line, ",") != strings.Count(ComparisonHeader, ",") || !strings.HasPrefix(line, c.Contestants[i].Name+",8,float32,16777216,") {
			t.Errorf("%q", line)
		}
	}
	text := c.Text()
	for _, part := range []string{
		"16 MiB, links 200 Mbit/s, 8 hosts", "WRONG RESULTS of gloo-bcube", "mpich was left out: no answer within 1m0s (--limit); and so on",
		"tributary takes 0.45 of the time of gloo-ring, and 1.015 of the link's limit; its hosts 0.40 of the processor time of gloo-ring",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	c.Strangers = 0.5
	if !strings.Contains(c.Text(), "others had 50 % of the processors") || strings.Contains(text, "DISTURBED") {
		t.Errorf("%s", c.Text())
	}
	none := Comparison{Contestants: []Contestant{{Name: "mpich"}}}
	none.Fabric = Fabric{Hosts: 2, Processes: 3}
	if !strings.Contains(none.Text(), "2 hosts with 3 processes each\n") {
		t.Errorf("%s", none.Text())
	}
	if none.Ratio() != 0 || none.Best() != nil || none.LinkLimit() != 0 || none.Text() == "" {
		t.Errorf("%+v", none)
	}
}

// TestMarkdown holds the tables against testdata/tables.md, which is to be read
// when it changes.
func TestMarkdown(t *testing.T) {
	lossless, lossy := measured(), measured()
	lossy.Fabric.Loss, lossy.Median = 0.01, 2200
	small := compared()
	small.Bytes, small.Fabric.Rate, small.Strangers = 8, 0, 0.25
	var lines strings.Builder
	for _, record := range []any{
		small, compared(), lossy, lossless,
		Contention{Kind: KindContention, Fabric: Fabric{Hosts: 8, Switches: 4, Rate: 200e6}, Bytes: 1 << 20, Shares: []Share{{"group 0", 0.49}, {"TCP stream", 0.51}}, Jain: 0.9996},
		lossless, // again: it takes the place of the first
	} {
		text, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(text, '\n'))
	}
	var r Records
	if err := r.Read(strings.NewReader("\n"+lines.String()), "f"); err != nil {
		t.Fatal(err)
	}
	if len(r.Comparisons) != 2 || len(r.Measurements) != 2 || len(r.Contentions) != 1 {
		t.Errorf("%+v", r)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "tables.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), r.Markdown()); diff != "" {
		t.Error(diff)
	}
	for text, message := range map[string]string{"\nx": "f:2: ", `{"kind":"song"}`: `its kind is "song"`, `{"kind":"comparison","bytes":"x"}`: "f:1: "} {
		if err := new(Records).Read(strings.NewReader(text), "f"); !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), message) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestInsert(t *testing.T) {
	page := "# Page\n" + pageBegin + "\nold\n" + pageEnd + "\nrest\n"
	first, err := Insert(page, "| new |\n")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(first, "# Page\n") || !strings.HasSuffix(first, "\nrest\n") || !strings.Contains(first, "| new |") || strings.Contains(first, "old") {
		t.Errorf("%s", first)
	}
	if again, err := Insert(first, "| new |\n"); err != nil || again != first {
		t.Errorf("again: %v\n%s", err, again)
	}
	for _, page := range []string{"", pageBegin, pageEnd + pageBegin} {
		if _, err := Insert(page, "x"); !errors.Is(err, ErrPage) {
			t.Errorf("%q: %v", page, err)
		}
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"8 bytes": SizeName(8), "1000 bytes": SizeName(1000), "64 KiB": SizeName(64 << 10), "16 MiB": SizeName(16 << 20),
		"unshaped": RateName(0), "200 Mbit/s": RateName(200e6), "2 Gbit/s": RateName(2e9), "1500 bit/s": RateName(1500),
		"-": timeName(0), "999 us": timeName(999), "1.23 ms": timeName(1234), "12.3 ms": timeName(12345), "123 ms": timeName(123456),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
