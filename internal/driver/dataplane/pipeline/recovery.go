package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/p4"
)

// Why all epochs have ended, or the target is left alone.
var (
	ErrTouched  = errors.New("pipeline: somebody else has changed the target's entries; let only this agent control it")
	ErrStranger = errors.New("pipeline: the target holds a program that is not Tributary's; restart it without one, or allow to replace it (p4runtime: replace)")
)

// heard takes news of the session.
func (d *driver) heard(ctx context.Context, e p4rt.Event) {
	why := d.about(cmp.Or(e.Err, p4rt.ErrRestarted)) // no reason: another push than that of the epochs
	switch e.Kind {
	case p4rt.Lost:
		d.attempt++
		d.refuse(apart, why)
	case p4rt.Backup:
		// The other one writes what it likes, and gets what is handed over.
		d.attempt++
		d.abandon(why)
		d.refuse(apart, why)
	case p4rt.Primary:
		if d.cookie != 0 && e.Cookie != d.cookie {
			d.abandon(why)
			d.cookie = 0
		}
		d.recover(ctx)
	case p4rt.Fault:
		d.plane.cfg.Log.Warn("the P4 target reports an error", slog.Uint64("times", e.Count), slog.Any("error", e.Err))
	}
}

// about names the target in an error.
func (d *driver) about(err error) error {
	return fmt.Errorf("target %s: %w", d.plane.cfg.Target.Address, err)
}

// failed is for a call that has failed for no reason of what was asked.
func (d *driver) failed(why error) {
	d.attempt++
	d.retry = true
	d.refuse(recovering, why)
}

// recover brings the target to hold what is wanted, beside the driver: that may
// take as long as pushing a program does. One recovery begins when the one
// before has ended, so that what is older is never written last.
func (d *driver) recover(ctx context.Context) {
	if d.stage != recovering {
		d.refuse(recovering, d.about(errBegun))
	}
	d.attempt++
	d.retry, d.again = false, d.busy
	if d.busy {
		return
	}
	r := recovery{plane: d.plane, attempt: d.attempt, epochs: len(d.ledger.all()) > 0, moved: d.moved}
	var err error
	if r.want, err = d.want(); err != nil {
		d.failed(err)
		return
	}
	d.busy, d.changed = true, false
	d.plane.running.Go(func() {
		r.err = r.run(ctx)
		d.plane.jobs.Put(func(ctx context.Context) { d.recovered(ctx, &r) })
	})
}

// recovery is one attempt to bring the target to hold what is wanted, and what
// came of it. It knows nothing of the driver, which goes on meanwhile.
type recovery struct {
	plane   *Plane
	attempt uint64
	want    p4.Program
	epochs  bool // want has epochs, which the target must hold already
	moved   bool // ... but by other ports and routes

	err                         error
	report                      p4rt.Report
	serial                      uint64 // the largest that the target held
	traffic, outcomes, discards []uint64
}

func (r *recovery) run(ctx context.Context) error {
	client := r.plane.client
	have, err := client.Read(ctx)
	if errors.Is(err, p4rt.ErrNoPipeline) || errors.Is(err, p4rt.ErrOtherPipeline) {
		err = r.push(ctx, err)
	}
	if err != nil {
		return err
	}
	r.serial = largestSerial(have)
	if r.epochs && r.touched(have) {
		return ErrTouched
	}
	if r.report, err = client.Reconcile(ctx, r.want); err != nil {
		return err
	}
	for id, to := range map[uint32]*[]uint64{
		p4.CounterTraffic: &r.traffic, p4.CounterOutcomes: &r.outcomes, p4.CounterDiscards: &r.discards,
	} {
		cells, err := client.Counter(ctx, id)
		if err != nil {
			return err
		}
		*to = packetsOf(cells)
	}
	return nil
}

// push gives the target the program, which it lacks.
func (r *recovery) push(ctx context.Context, lack error) error {
	p := r.plane
	if errors.Is(lack, p4rt.ErrOtherPipeline) {
		name, version, err := p.client.Held(ctx)
		if err != nil {
			return err
		}
		if name != p4.Name && !p.cfg.Target.Replace {
			return fmt.Errorf("%w: target %s holds %q", ErrStranger, p.cfg.Target.Address, name)
		}
		p.cfg.Log.Warn("the P4 target holds another program, which is replaced",
			slog.String("program", name), slog.String("version", version), slog.String("by", p4.Version))
	}
	cookie, err := p.client.Push(ctx)
	if err != nil {
		return err
	}
	p.cfg.Log.Info("program pushed", slog.String("target", p.cfg.Target.Address), slog.Uint64("cookie", cookie))
	if r.epochs {
		return ErrTouched // whoever had taken the program away
	}
	return nil
}

// ofEpochs are the tables in which epochs have entries, beside that of trees.
var ofEpochs = []uint32{p4.TableEpochs, p4.TableNeighbours, p4.TableRewrite}

// touched reports whether the target lacks something of an epoch.
func (r *recovery) touched(have p4.Program) bool {
	return slices.ContainsFunc(r.plane.schema.Diff(have, r.want), func(u p4rt.Update) bool {
		switch {
		case u.Op == p4rt.Delete, r.moved && u.Op == p4rt.Modify:
			return false
		case u.Group != nil:
			return true
		}
		return slices.Contains(ofEpochs, u.Entry.Table) && !(r.moved && elsewhere(u.Entry, have.Entries))
	})
}

// elsewhere reports whether entry is that of a neighbour, and the same one is at another
// port in have.
func elsewhere(entry *p4.Entry, have []p4.Entry) bool {
	const port = 1 // of the keys
	return entry.Table == p4.TableNeighbours && slices.ContainsFunc(have, func(e p4.Entry) bool {
		for i := range entry.Match {
			if e.Table != entry.Table || i != port && !bytes.Equal(e.Match[i].Value, entry.Match[i].Value) {
				return false
			}
		}
		return true
	})
}

// largestSerial returns the largest serial number of the epochs that a target
// holds: a predecessor's clock may have been ahead.
func largestSerial(have p4.Program) (largest uint64) {
	const parameter = 1 // of action epoch
	for _, e := range have.Entries {
		if e.Table == p4.TableEpochs && e.Action == p4.ActionEpoch && len(e.Params) > parameter {
			var b [8]byte
			copy(b[8-min(8, len(e.Params[parameter])):], e.Params[parameter])
			largest = max(largest, binary.BigEndian.Uint64(b[:]))
		}
	}
	return largest
}

// recovered takes what came of a recovery.
func (d *driver) recovered(ctx context.Context, r *recovery) {
	d.busy = false
	switch {
	case d.again && d.stage == recovering:
		d.recover(ctx)
		return
	case r.attempt != d.attempt:
		return
	case errors.Is(r.err, ErrTouched):
		d.abandon(r.err)
		d.recover(ctx)
		return
	case r.err != nil:
		d.failed(r.err)
		return
	}
	d.ledger.serial = max(d.ledger.serial, r.serial)
	if d.cookie != r.report.Cookie { // nothing that was seen before counts
		d.cookie = r.report.Cookie
		d.ledger.baseline(r.traffic)
		d.counts.baseline(r.outcomes, r.discards)
	}
	if left := r.report.Deleted; left > 0 {
		d.plane.cfg.Log.Info("swept what is not wanted from the P4 target", slog.Int("entries and groups", left))
	}
	d.written, d.moved = r.want, d.changed
	d.stage, d.why = usable, nil
	d.checks.restart()
	d.check(time.Now())
	d.lapse(ctx, r.traffic)
	d.settle(ctx) // what has changed meanwhile
}
