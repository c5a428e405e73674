package p4rt

import (
	"context"
	"errors"
	"fmt"
	"io"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/tributary-fabric/tributary/p4"
)

// Read returns what the target holds of entries and groups that a controller
// writes, in the form of Normal: not what the program itself has.
func (c *Client) Read(ctx context.Context) (p4.Program, error) {
	l, err := c.ready()
	if err != nil {
		return p4.Program{}, c.fail("read", err)
	}
	state, err := c.read(ctx, l)
	return state, c.fail("read", err)
}

func (c *Client) read(ctx context.Context, l *link) (p4.Program, error) {
	var asked []*p4v1.Entity
	for _, t := range c.schema.written() {
		asked = append(asked, tableEntity(&p4v1.TableEntry{TableId: t.id}))
	}
	r := reader{c.schema, newNormal(ErrMalformed)}
	err := c.entities(ctx, l, append(asked, groupEntity(new(p4v1.MulticastGroupEntry))), r.take)
	return r.program.Program, err
}

// entities reads entities and calls take with each.
func (c *Client) entities(ctx context.Context, l *link, asked []*p4v1.Entity, take func(*p4v1.Entity) error) error {
	return l.call(ctx, c.cfg.Deadline, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx) // ends the stream when take fails
		defer cancel()
		stream, err := l.api.Read(ctx, &p4v1.ReadRequest{DeviceId: c.cfg.Device, Entities: asked})
		if err != nil {
			return err
		}
		for {
			answer, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, e := range answer.GetEntities() {
				if err := take(e); err != nil {
					return err
				}
			}
		}
	})
}

// reader collects entries and groups from what a target sends.
type reader struct {
	schema  *Schema
	program *normal
}

func (r *reader) take(m *p4v1.Entity) error {
	switch kind := m.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return r.entry(kind.TableEntry)
	case *p4v1.Entity_PacketReplicationEngineEntry:
		return r.group(kind.PacketReplicationEngineEntry.GetMulticastGroupEntry())
	default:
		return fmt.Errorf("%w: an entity of type %T, which nobody asked for", ErrMalformed, kind)
	}
}

func (r *reader) entry(m *p4v1.TableEntry) error {
	if m.GetIsConst() || m.GetIsDefaultAction() {
		return nil // the program's own
	}
	e, err := r.schema.decode(m)
	if err != nil {
		return err
	}
	return r.program.addEntry(r.schema, e)
}

func (r *reader) group(m *p4v1.MulticastGroupEntry) error {
	if m == nil {
		return nil // a clone session: this package writes none
	}
	g, err := decodeGroup(m)
	if err != nil {
		return err
	}
	return r.program.addGroup(g)
}

func tableEntity(e *p4v1.TableEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}
}

func groupEntity(g *p4v1.MulticastGroupEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{
		PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: g},
		},
	}}
}
