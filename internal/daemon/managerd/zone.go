package managerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/membership"
)

// zone is the manager's place among its hosts, if it has one. It is a high
// priority monitor there: whoever suspects a host notifies the manager first.
type zone struct {
	node    *membership.Node
	watcher *membership.Watcher
	lives   lives
}

// joinZone makes the manager a node of the zone of its hosts.
func (d *Daemon) joinZone() error {
	if d.cfg.Membership == nil {
		return nil
	}
	c := *d.cfg.Membership
	c.Monitor = true
	if c.Log == nil {
		c.Log = d.log
	}
	node, err := membership.Join(context.Background(), c)
	if err != nil {
		return fmt.Errorf("managerd: %w", err)
	}
	d.zone = &zone{node: node, watcher: node.Watcher()}
	return nil
}

// leaveZone ends what joinZone began. In order, the others are notified.
func (d *Daemon) leaveZone(ordered bool) {
	if d.zone == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Call)
	defer cancel()
	if ordered {
		if err := d.zone.node.Leave(ctx, 0); err != nil {
			d.log.Warn("leaving the zone", slog.Any("error", err))
		}
	}
	_ = d.zone.node.Close(ctx) // it goes on to its end
}

// watchZone marks hosts in the topology as their zones see them: down when they
// have died or left, up when they are there. A host that never was in a zone
// counts as up. A manager in the management zone follows all zones below it. It
// returns when the node has ended; hosts then stay as they are.
func (d *Daemon) watchZone() {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	if d.cfg.Membership.Management {
		below := d.zone.node.BelowWatcher()
		tasks.Go(func() { d.follow() })
		tasks.Go(func() { d.mark(below) })
	}
	d.mark(d.zone.watcher)
	if why := d.zone.node.Err(); why != nil {
		d.log.Warn("the zone does not report any more who dies", slog.Any("error", why))
	}
}

// mark reads notices until the node has ended.
func (d *Daemon) mark(from *membership.Watcher) {
	for {
		notices, err := from.Next(context.Background())
		if err != nil {
			return
		}
		var marks []mark
		for i := range notices {
			x := &notices[i]
			if !d.zone.lives.news(x) {
				continue // an earlier life
			}
			// Also of who is not in the fabric, or not yet: a service beside it, say.
			marks = append(marks, mark{x.Member.Name, byMembership, x.Kind == membership.Joined, x.String()})
		}
		d.fabric.Lock()
		err = d.change(d.worthwhile(marks))
		d.fabric.Unlock()
		if err != nil {
			return // the manager ends
		}
	}
}

// maxStrangers bounds what is known to be down and is not in the fabric.
const maxStrangers = 1 << 16

// worthwhile returns the marks without those of strangers, where too many are known. The
// caller holds fabric.
func (d *Daemon) worthwhile(marks []mark) []mark {
	g := d.overlay.View().Graph()
	return slices.DeleteFunc(marks, func(m mark) bool {
		_, known := g.Lookup(m.what)
		return !known && !m.up && len(d.outages) >= maxStrangers
	})
}

// lives are the latest lives of hosts by name, of all zones: one that has started
// again at another address, or in another zone, may be known before its earlier life
// is found dead.
type lives struct {
	mu     sync.Mutex
	latest map[string]uint64
}

// news reports whether a notice is about the latest life of its host.
func (l *lives) news(x *membership.Notice) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.latest == nil {
		l.latest = map[string]uint64{}
	}
	name, incarnation := x.Member.Name, x.Member.Version.Incarnation
	if incarnation < l.latest[name] {
		return false
	}
	l.latest[name] = incarnation
	return true
}

// lookForZones is how often a manager of the management zone looks for zones that
// it does not follow yet.
const lookForZones = time.Second

// follow follows each base zone that comes into the census, until the node ends.
func (d *Daemon) follow() {
	tick := time.NewTicker(lookForZones)
	defer tick.Stop()
	followed := map[uint32]bool{}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Call)
		all, err := d.zone.node.Census(ctx)
		for _, z := range all {
			if !followed[z.Number] {
				err := d.zone.node.Follow(ctx, z.Number)
				followed[z.Number] = err == nil
				d.log.Debug("follows a zone", slog.Uint64("zone", uint64(z.Number)), slog.Any("error", err))
			}
		}
		cancel()
		if errors.Is(err, membership.ErrClosed) {
			return
		}
		select {
		case <-tick.C:
		case <-d.zone.node.Done():
			return
		}
	}
}

// Pages returns what the manager serves at its admin address beside metrics: what it
// sees of its zone.
func (d *Daemon) Pages() map[string]http.Handler {
	if d.zone == nil {
		return nil
	}
	return map[string]http.Handler{membership.StatusPage: d.zone.node}
}

// ZoneCollectors returns the metrics of the manager's node in its zone, none if
// it has none.
func (d *Daemon) ZoneCollectors() []prometheus.Collector {
	if d.zone == nil {
		return nil
	}
	return []prometheus.Collector{d.zone.node.Collector()}
}
