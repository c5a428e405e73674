package p4rt

import (
	"context"
	"errors"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/tributary-fabric/tributary/p4"
)

// Report reports what a Reconcile did, in entries and groups together.
type Report struct {
	Inserted, Modified, Deleted int
	Kept                        int    // were there and as wanted
	Cookie                      uint64 // of the push under which this holds, as in Event
}

// count counts what was done.
func (r *Report) count(u Update) {
	switch u.Op {
	case Insert:
		r.Inserted++
	case Modify:
		r.Modified++
	case Delete:
		r.Deleted++
	}
}

// Write carries out updates, of which no two may be about the same entry or
// group, in the order of Diff. If some are refused, the error is a *WriteError,
// and what would come later is not tried. After ErrWedged or ErrUnavailable
// what was under way may have been written or not: a Reconcile finds out.
func (c *Client) Write(ctx context.Context, updates []Update) error {
	if err := c.writing.take(ctx); err != nil {
		return c.fail("write", err)
	}
	defer c.writing.give()
	l, err := c.ready()
	if err == nil {
		_, err = c.write(ctx, l, c.schema.arrange(updates))
	}
	return c.fail("write", err)
}

// Reconcile makes the target hold want and nothing else that a controller
// writes: it reads what is there and writes the difference, in the order of
// Diff. After an error the Report reports what was done.
func (c *Client) Reconcile(ctx context.Context, want p4.Program) (Report, error) {
	if err := c.writing.take(ctx); err != nil {
		return Report{}, c.fail("reconcile", err)
	}
	defer c.writing.give()
	report, err := c.reconcile(ctx, want)
	return report, c.fail("reconcile", err)
}

func (c *Client) reconcile(ctx context.Context, want p4.Program) (Report, error) {
	want, err := c.schema.Normal(want)
	if err != nil {
		return Report{}, err
	}
	l, err := c.connected()
	if err != nil {
		return Report{}, err
	}
	// A target that lost everything a moment ago must not pass for one that
	// holds nothing yet.
	if err := c.look(ctx, l); err != nil {
		return Report{}, err
	}
	if l, err = c.ready(); err != nil {
		return Report{}, err
	}
	cookie := c.cookie()
	have, err := c.read(ctx, l)
	if err != nil {
		return Report{}, err
	}
	updates := c.schema.Diff(have, want)
	report, err := c.write(ctx, l, updates)
	report.Cookie = cookie
	report.Kept = len(want.Entries) + len(want.Groups)
	for _, u := range updates {
		if u.Op != Delete {
			report.Kept--
		}
	}
	return report, err
}

// write writes arranged updates, step by step.
func (c *Client) write(ctx context.Context, l *link, updates []Update) (Report, error) {
	var done Report
	encoded := make([]*p4v1.Update, len(updates))
	for i, u := range updates {
		var err error
		if encoded[i], err = c.schema.update(u, l.portBytes); err != nil {
			return done, fmt.Errorf("%s: %w", c.schema.words(u), err)
		}
	}
	tried := 0
	for _, step := range steps(updates) {
		each, err := c.writeStep(ctx, l, encoded[tried:tried+len(step)])
		if err != nil {
			return done, err
		}
		tried += len(step)
		var failed []UpdateError
		for i, u := range step {
			if each != nil && each[i] != nil {
				failed = append(failed, UpdateError{u, c.schema.words(u), each[i]})
				continue
			}
			done.count(u)
		}
		if len(failed) > 0 {
			c.explain(ctx, l, failed)
			return done, &WriteError{Failed: failed, Tried: tried, Left: len(updates) - tried}
		}
	}
	return done, nil
}

// writeStep makes one request. It returns the error of each update that was
// refused, or none, and otherwise that of the call.
func (c *Client) writeStep(ctx context.Context, l *link, updates []*p4v1.Update) (each []error, err error) {
	err = l.call(ctx, c.cfg.Deadline, func(ctx context.Context) error {
		_, err := l.api.Write(ctx, &p4v1.WriteRequest{
			DeviceId: c.cfg.Device, ElectionId: c.cfg.Election.proto(), Updates: updates,
		})
		if refused, ok := perUpdate(err, len(updates)); ok {
			each, err = refused, nil
		}
		return err
	})
	return each, err
}

// explain finds out which of the failed updates had no room: where bmv2 has no
// reason to report, the table's entries are counted.
func (c *Client) explain(ctx context.Context, l *link, failed []UpdateError) {
	held := make(map[uint32]int64) // entries by table; -1: not known
	for i := range failed {
		f := &failed[i]
		if f.Update.Op != Insert || f.Update.Entry == nil || !errors.Is(f.Err, errUnexplained) {
			continue
		}
		t := c.schema.tables[f.Update.Entry.Table]
		if _, counted := held[t.id]; !counted {
			held[t.id] = c.entriesIn(ctx, l, t)
		}
		if n := held[t.id]; n >= t.size {
			f.Err = fmt.Errorf("%w: table %s holds %d entries and has room for %d", ErrTableFull, t.name, n, t.size)
		}
	}
}

// entriesIn counts the entries of a table; -1: that failed.
func (c *Client) entriesIn(ctx context.Context, l *link, t *table) int64 {
	n := int64(0)
	asked := []*p4v1.Entity{tableEntity(&p4v1.TableEntry{TableId: t.id})}
	if err := c.entities(ctx, l, asked, func(*p4v1.Entity) error { n++; return nil }); err != nil {
		return -1
	}
	return n
}

// update returns an update as it is written. Errors wrap ErrEntry.
func (s *Schema) update(u Update, portBytes bool) (*p4v1.Update, error) {
	m := new(p4v1.Update)
	switch u.Op {
	case Insert:
		m.Type = p4v1.Update_INSERT
	case Modify:
		m.Type = p4v1.Update_MODIFY
	case Delete:
		m.Type = p4v1.Update_DELETE
	default:
		return nil, fmt.Errorf("%w: %v", ErrEntry, u.Op)
	}
	if (u.Entry == nil) == (u.Group == nil) {
		return nil, fmt.Errorf("%w: an update is about an entry or about a group", ErrEntry)
	}
	if u.Group != nil {
		group := *u.Group
		if u.Op == Delete {
			group.Replicas = nil
		}
		g, err := encodeGroup(group, portBytes)
		m.Entity = groupEntity(g)
		return m, err
	}
	encode := s.entry
	if u.Op == Delete {
		encode = s.keyOf
	}
	e, err := encode(u.Entry)
	m.Entity = tableEntity(e)
	return m, err
}

// PacketOut gives packets to the target, in their order. None is sent unless
// all fit the program. The target does not answer: what it cannot send it reports
// by an event Fault, if at all.
func (c *Client) PacketOut(packets ...Packet) error {
	encoded := make([]*p4v1.PacketOut, len(packets))
	for i, p := range packets {
		var err error
		if encoded[i], err = c.schema.packetOut(p); err != nil {
			return c.fail("packet out", err)
		}
	}
	l, err := c.ready() // a target drops in silence what another than the primary sends
	if err != nil {
		return c.fail("packet out", err)
	}
	sent, err := l.send(c.cfg.Deadline, encoded)
	c.counts.out.Add(uint64(sent))
	return c.fail("packet out", err)
}
