package discoverer_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/topology"
)

// TestMain lets this binary be, on demand, all the targets of a fabric.
func TestMain(m *testing.M) {
	if spec := os.Getenv("DISCOVERER_TARGETS"); spec != "" {
		targets(spec)
		return
	}
	os.Exit(m.Run())
}

type printer struct{}

func (printer) Fatal(v ...any) { panic(fmt.Sprint(v...)) }

// targets serves a fabric's switches. It writes the first one's address; for each line that it
// reads, it cuts a link or restores it.
func targets(spec string) {
	g, err := topology.Parse(spec)
	if err != nil {
		panic(err)
	}
	f := newFabric(printer{}, g, nil)
	fmt.Println(f.switches[0].addr)
	var cut [2]topology.End
	for _, l := range g.AllLinks() {
		if g.IsSwitch(l.Ends[0].Node) {
			cut = l.Ends
			break
		}
	}
	lines := bufio.NewScanner(os.Stdin)
	for up := false; lines.Scan(); up = !up {
		f.mu.Lock()
		f.links[cut] = up
		f.mu.Unlock()
		for _, e := range cut {
			f.switches[g.SwitchIndex(e.Node)].server.Changed()
		}
	}
}

// spent returns the processor time of this process.
func spent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // which cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStreams measures a map by streams of real gNMI: its time, processor time and
// memory, and those of a link that is cut. The targets are another process.
func BenchmarkStreams(b *testing.B) {
	for _, spec := range []string{"fat-tree:8", "fat-tree:16", "fat-tree:28"} {
		b.Run("fabric="+spec, func(b *testing.B) {
			for range b.N {
				if err := measure(b, spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func measure(b *testing.B, spec string) (err error) {
	g, err := topology.Parse(spec)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DISCOVERER_TARGETS="+spec)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	seed, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, began := spent(), time.Now()
	news := make(chan discoverer.News, 1024)
	d, err := discoverer.Start(discoverer.Config{
		Core:  discovery.Config{Seeds: []string{seed[:len(seed)-1]}, Allow: allowed},
		Apply: func(n discoverer.News) { news <- n },
	})
	if err != nil {
		return err
	}
	defer d.Close()
	for n := range news {
		if len(n.Nodes) == g.Nodes() && len(n.Links) == g.Links() && len(n.Agents()) == g.Switches() {
			break
		}
	}
	b.ReportMetric(time.Since(began).Seconds(), "s/map")
	b.ReportMetric((spent() - cpu).Seconds(), "cpu-s/map")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
	b.ReportMetric(float64(after.Sys)/1e6, "MB-system")
	for _, what := range []discovery.What{discovery.LinkDown, discovery.LinkUp} {
		cpu, began = spent(), time.Now()
		if _, err := fmt.Fprintln(in); err != nil {
			return err
		}
		for found := false; !found; {
			for _, c := range (<-news).Changes {
				found = found || c.What == what
			}
		}
		unit := map[discovery.What]string{discovery.LinkDown: "down", discovery.LinkUp: "up"}[what]
		b.ReportMetric(float64(time.Since(began).Microseconds())/1e3, "ms/"+unit)
		b.ReportMetric(float64((spent()-cpu).Microseconds())/1e3, "cpu-ms/"+unit)
	}
	return nil
}
