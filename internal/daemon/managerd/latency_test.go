package managerd

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/topology"
)

// logged are the lines of a log.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *logged) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// TestMeasuredLatencies are followed, and are in the log for who debugs; the history has what
// else is new of a link, and a latency that an operator gives.
func TestMeasuredLatencies(t *testing.T) {
	var log logged
	d, err := Start(Config{Listen: "127.0.0.1:0", Merge: func(Operator, string) {}, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill)
	for _, test := range []struct {
		name     string
		what     discovery.What
		spec     topology.LinkSpec
		whole    bool
		recorded string
	}{
		{"new", discovery.LinkAdded, topology.LinkSpec{Bandwidth: 1e9, Latency: 500}, false, "link h0:1--s0:1 added"},
		{"noise", discovery.LinkChanged, topology.LinkSpec{Bandwidth: 1e9, Latency: 2664}, false, ""},
		{"speed, too", discovery.LinkChanged, topology.LinkSpec{Bandwidth: 2e9, Latency: 12653}, false, "bandwidth 1G, latency 2664ns to bandwidth 2G, latency 12653ns"},
		{"an operator's", discovery.LinkChanged, topology.LinkSpec{Bandwidth: 2e9, Latency: 1000}, true, "latency 12653ns to latency 1us"},
	} {
		t.Run(test.name, func(t *testing.T) {
			log.take()
			before, redrawn := len(d.history.all), d.counts.redrawn.Load()
			link := discovery.Link{Ends: discovery.Ends{{Node: "h0", Port: 1}, {Node: "s0", Port: 1}}, LinkSpec: test.spec, Up: true}
			d.discovered(discoverer.News{
				Map:     discovery.Map{Nodes: []discovery.Node{{Name: "h0", Kind: topology.Host, Up: true}, {Name: "s0", Kind: topology.Switch, Up: true}}, Links: []discovery.Link{link}},
				Changes: []discovery.Change{{What: test.what, Link: link, Cause: "a test"}}, Whole: test.whole,
			})
			if is := d.view().Graph().Link(0).Latency; is != test.spec.Latency {
				t.Errorf("the map has %v", is)
			}
			now, level := d.history.all[before:], "level=WARN"
			if test.recorded == "" {
				level = "level=DEBUG"
				if len(now) > 0 || d.counts.redrawn.Load() != redrawn {
					t.Errorf("the history has %+v", now)
				}
			} else if len(now) != 1 || !strings.Contains(strings.Join(now[0].What, "\n"), test.recorded) || d.counts.redrawn.Load() == redrawn {
				t.Errorf("the history has %+v", now)
			}
			lines := 0
			for _, line := range log.take() {
				if strings.Contains(line, "the map has changed") {
					if lines++; !strings.Contains(line, level) {
						t.Errorf("logged %s", line)
					}
				}
			}
			if lines == 0 {
				t.Errorf("nothing is logged")
			}
		})
	}
}
