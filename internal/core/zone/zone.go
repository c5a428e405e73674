package zone

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/attribute"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Keys of attributes that the service itself writes.
const (
	Reserved   = "tributary."         // what they begin with
	MonitorKey = Reserved + "monitor" // a high priority monitor
)

// ErrReserved is returned for keys that begin with Reserved.
var ErrReserved = errors.New("zone: the key is the service's own")

// Config is what a node is given once.
type Config struct {
	Member member.Config

	// Attributes is what the replication is reported; its Self is set by New.
	Attributes attribute.Config

	Monitor bool // it is a high priority monitor from the start
}

// DefaultConfig returns the configuration of a node that knows nobody.
func DefaultConfig(self gossip.ID, incarnation uint64) Config {
	return Config{
		Member:     member.Config{Settings: member.DefaultSettings(), Self: self, Incarnation: incarnation},
		Attributes: attribute.DefaultConfig(self.Key().Life(incarnation)),
	}
}

// peer is a neighbour.
type peer struct {
	link member.Link
	life attributes.Life
}

// Core is one node's part in a zone. Its methods are not safe for concurrent
// use.
type Core struct {
	members *member.Core
	attrs   *attribute.Core
	dir     *member.Directory
	self    attributes.Life

	peers    []peer
	monitors []attributes.Life // rising; self is not one of them
	reported bool              // the members' core knows them

	batch []member.Input // of a step that begins with the monitors
	in    []attribute.Input
	out   attribute.Output
}

// New returns the part of a node that starts at now.
func New(cfg Config, dir *member.Directory, now core.Time) (*Core, error) {
	members, err := member.New(cfg.Member, dir, now)
	if err != nil {
		return nil, err
	}
	c, err := Around(members, cfg.Attributes)
	if err != nil {
		return nil, err
	}
	return c, c.SetMonitor(cfg.Monitor)
}

// Around returns the part of a node whose members' core has just been made.
func Around(members *member.Core, attributes attribute.Config) (*Core, error) {
	dir, self := members.Directory(), members.Self()
	attributes.Self = dir.Key(self.Node).Life(self.Version.Incarnation)
	attrs, err := attribute.New(attributes)
	if err != nil {
		return nil, err
	}
	return &Core{members: members, attrs: attrs, dir: dir, self: attributes.Self, reported: true}, nil
}

// Members returns the members' core, for queries.
func (c *Core) Members() *member.Core { return c.members }

// Attributes returns the attributes' core, for queries.
func (c *Core) Attributes() *attribute.Core { return c.attrs }

// Directory returns what numbers the nodes.
func (c *Core) Directory() *member.Directory { return c.dir }

// Self returns the node's own life.
func (c *Core) Self() attributes.Life { return c.self }

// Life returns the life of a node in the view as the attributes' core knows it;
// 0 of who is not in the view.
func (c *Core) Life(i member.Index) attributes.Life {
	if !c.members.Has(i) {
		return 0
	}
	return c.members.Life(i)
}

// Find returns the node in the view that has a life.
func (c *Core) Find(life attributes.Life) (member.Index, bool) { return c.members.FindLife(life) }

// View returns the nodes in the view in the order of the ring, the node itself
// included. It is the core's own, and valid until the next step.
func (c *Core) View() []member.Index { return c.members.View() }

// ID returns the ID of a node.
func (c *Core) ID(i member.Index) gossip.ID { return c.dir.ID(i) }

// Version returns the version of a node in the view.
func (c *Core) Version(i member.Index) gossip.Version { return c.members.Version(i) }

// Attribute returns a value of a node in the view, and whether it has the key.
// It must not be changed.
func (c *Core) Attribute(life attributes.Life, key string) ([]byte, bool) {
	return c.attrs.Get(life, key)
}

// Changed returns what the last step has learnt of others' attributes. It is
// valid until the next one.
func (c *Core) Changed() []attribute.Notice { return c.out.Notices }

// Deadline returns when the core wants to be stepped even without input.
func (c *Core) Deadline() core.Time {
	return c.members.Deadline().Earlier(c.attrs.Deadline())
}

// Step takes inputs and adds what they bring about to out.
func (c *Core) Step(now core.Time, in []member.Input, out *member.Output) {
	notices, neighbours := len(out.Notices), len(out.Neighbours)
	c.stepMembers(now, in, out)
	c.in = c.in[:0]
	for i := range out.Notices[notices:] {
		c.noticed(&out.Notices[notices+i])
	}
	for _, n := range out.Neighbours[neighbours:] {
		c.neighbour(n)
	}
	for i := range in {
		if in[i].Kind == member.Attached {
			c.attached(in[i].Link, in[i].Payload)
		}
	}
	c.out.Reset()
	if out.Stopped {
		return
	}
	c.attrs.Step(now, c.in, &c.out)
	if clear(c.in); cap(c.in) > keptInputs {
		c.in = nil
	}
	for _, s := range c.out.Sends {
		if link, ok := c.linkTo(s.To); ok {
			out.Attached = append(out.Attached, member.Attachment{Link: link, Payload: s.Message, Size: s.Message.Size()})
		}
	}
	c.watchMonitors()
}

// keptInputs is how many inputs a step may have for their memory to be kept: it has
// one for each member when it learns the view.
const keptInputs = 64

// stepMembers steps the members' core, once: all that it does is reported to the
// attributes in the same step. What has been learnt of monitors since the last
// one comes before in, which is soon enough, since only steps notify monitors.
func (c *Core) stepMembers(now core.Time, in []member.Input, out *member.Output) {
	if c.reported {
		c.members.Step(now, in, out)
		return
	}
	c.reported = true
	c.batch = append(c.batch[:0], member.Input{Kind: member.SetMonitors, Nodes: c.Monitors()})
	c.batch = append(c.batch, in...)
	c.members.Step(now, c.batch, out)
	clear(c.batch)
}

func (c *Core) noticed(n *member.Notice) {
	switch n.Kind {
	case member.Join:
		c.in = append(c.in, attribute.Input{Kind: attribute.Joined, Life: n.Life})
	case member.Leave:
		c.in = append(c.in, attribute.Input{Kind: attribute.Left, Life: n.Life})
		c.setMonitor(n.Life, false)
	}
}

func (c *Core) neighbour(n member.Neighbour) {
	if n.Up {
		life := c.Life(n.Node)
		c.peers = append(c.peers, peer{n.Link, life})
		c.in = append(c.in, attribute.Input{Kind: attribute.NeighbourUp, Life: life})
		return
	}
	if i := slices.IndexFunc(c.peers, func(p peer) bool { return p.link == n.Link }); i >= 0 {
		c.in = append(c.in, attribute.Input{Kind: attribute.NeighbourDown, Life: c.peers[i].life})
		c.peers = slices.Delete(c.peers, i, i+1)
	}
}

func (c *Core) attached(link member.Link, payload any) {
	m, ok := payload.(attributes.Message)
	if i := slices.IndexFunc(c.peers, func(p peer) bool { return p.link == link }); ok && i >= 0 {
		c.in = append(c.in, attribute.Input{Kind: attribute.Message, Life: c.peers[i].life, Message: m})
	}
}

func (c *Core) linkTo(life attributes.Life) (member.Link, bool) {
	for _, p := range c.peers {
		if p.life == life {
			return p.link, true
		}
	}
	return 0, false
}

// watchMonitors learns from the step's notices who declares itself a monitor.
func (c *Core) watchMonitors() {
	for i := range c.out.Notices {
		n := &c.out.Notices[i]
		if slices.Contains(n.Keys, MonitorKey) {
			_, is := c.attrs.Get(n.Life, MonitorKey)
			c.setMonitor(n.Life, is)
		}
	}
}

func (c *Core) setMonitor(life attributes.Life, is bool) {
	n := len(c.monitors)
	c.monitors = core.Include(c.monitors, life, is)
	c.reported = c.reported && len(c.monitors) == n
}

// Monitors returns the other nodes in the view that have declared themselves
// high priority monitors.
func (c *Core) Monitors() []member.Index {
	nodes := make([]member.Index, 0, len(c.monitors))
	for _, life := range c.monitors {
		if i, ok := c.members.FindLife(life); ok {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// SetMonitor declares the node a high priority monitor, or no longer one.
func (c *Core) SetMonitor(on bool) error {
	if on {
		return c.Declare(MonitorKey, nil)
	}
	return c.Retract(MonitorKey)
}

// Declare writes a reserved key of the node's own, unless it has that value.
func (c *Core) Declare(key string, value []byte) error {
	if old, has := c.attrs.Get(c.self, key); has && string(old) == string(value) {
		return nil
	}
	return c.attrs.Set(key, value)
}

// Retract deletes a reserved key of the node's own, if there is one.
func (c *Core) Retract(key string) error {
	if _, has := c.attrs.Get(c.self, key); !has {
		return nil
	}
	return c.attrs.Delete(key)
}

// Set writes an attribute of the node's own, as attribute.Core.Set does, and
// refuses reserved keys with ErrReserved.
func (c *Core) Set(key string, value []byte) error {
	if strings.HasPrefix(key, Reserved) {
		return fmt.Errorf("%w: %q", ErrReserved, key)
	}
	return c.attrs.Set(key, value)
}

// Delete deletes an attribute of the node's own. See Set.
func (c *Core) Delete(key string) error {
	if strings.HasPrefix(key, Reserved) {
		return fmt.Errorf("%w: %q", ErrReserved, key)
	}
	return c.attrs.Delete(key)
}
