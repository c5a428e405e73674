package servers

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Crowd is servers in a world, and the books about their broadcasts.
type Crowd struct {
	World   *sim.World
	Habits  Habits
	Config  func(broadcastmsg.Node, uint64) broadcast.Config
	names   []broadcastmsg.Node
	ids     map[broadcastmsg.Node]sim.NodeID
	servers []*Server // nil: dead
	mapping map[broadcastmsg.Index]*broadcast.Members
	blocked map[[2]sim.NodeID]int // nothing passes from the one to the other

	replays    int // requests that were sent again by who had sent them before
	broadcasts []account
	wrong      []string
	groups     map[groupHandle]bool // by their creators: Created without error
	LastRun    core.Time            // when a server last began to run a request
}

type groupHandle struct {
	server sim.NodeID
	life   uint64
	handle uint64
}

// account is what the books have about one broadcast.
type account struct {
	root     sim.NodeID
	life     uint64 // incarnation of the root
	request  uint64
	members  []sim.NodeID // who is to run it; nil: not known
	runs     map[run]int
	ends     int
	err      error
	reported []byte // what the root's service collected
}

type run struct {
	server sim.NodeID
	life   uint64
}

// NewCrowd returns n living servers.
func NewCrowd(w *sim.World, n int, habits Habits) *Crowd {
	c := &Crowd{
		World: w, Habits: habits, Config: broadcast.DefaultConfig,
		ids: map[broadcastmsg.Node]sim.NodeID{}, mapping: map[broadcastmsg.Index]*broadcast.Members{},
		groups: map[groupHandle]bool{}, blocked: map[[2]sim.NodeID]int{},
	}
	for i := range n {
		name := broadcastmsg.Node(fmt.Sprintf("s%d", i))
		c.names = append(c.names, name)
		c.ids[name] = sim.NodeID(i)
	}
	return c
}

// Start starts all servers.
func (c *Crowd) Start() error {
	for i := range c.names {
		s, err := c.server(sim.NodeID(i), 1)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, s)
		c.World.Add(string(c.names[i]), s)
	}
	return nil
}

func (c *Crowd) server(id sim.NodeID, life uint64) (*Server, error) {
	k, err := broadcast.New(c.Config(c.names[id], life))
	if err != nil {
		return nil, err
	}
	if err := k.Register(broadcast.Service{ID: service, OutOfBand: true}); err != nil {
		return nil, err
	}
	return &Server{
		crowd: c, id: id, incarnation: life, core: k, habits: c.Habits,
		rand:    rand.New(rand.NewPCG(c.World.Rand().Uint64(), life)),
		exposed: map[uint64]uint64{}, replies: map[uint64][]byte{}, own: map[uint64]int{},
	}, nil
}

// Targets returns the servers, in the order given, with one entity each.
func (c *Crowd) Targets(members []sim.NodeID) []broadcastmsg.Target {
	all := make([]broadcastmsg.Target, len(members))
	tag := []broadcastmsg.Tag{{1}}
	for i, id := range members {
		all[i] = broadcastmsg.Target{Node: c.names[id], Tags: tag}
	}
	return all
}

// Kill ends a server's life; the others are notified after `reported`, and after `reboot`
// it lives again, of which they are notified after as long. Where reported is 0 they hear
// of the reboot alone.
func (c *Crowd) Kill(id sim.NodeID, announced, reboot time.Duration) {
	if announced > 0 {
		c.notifyDeath(id, announced)
	}
	c.crash(id, reboot, func(up broadcast.Input) {
		c.World.After(announced, "life reported", func() { c.notify(id, up) })
	})
}

// Move ends a server's life, and begins the next one elsewhere after reboot, of
// which the others are notified at once; of the end of the earlier one after reported.
func (c *Crowd) Move(id sim.NodeID, reboot, announced time.Duration) {
	c.notifyDeath(id, announced)
	c.crash(id, reboot, func(up broadcast.Input) { c.notify(id, up) })
}

// notifyDeath notifies the others, later, that the life that a server has now is over.
func (c *Crowd) notifyDeath(id sim.NodeID, later time.Duration) {
	down := broadcast.Input{Kind: broadcast.Down, Node: c.names[id], Incarnation: c.servers[id].incarnation}
	c.World.After(later, "death reported", func() { c.notify(id, down) })
}

// Block has everything be lost on connections from some servers to others for a
// while, at the end of which these end.
func (c *Crowd) Block(from, to []sim.NodeID, long time.Duration) {
	each := func(do func(way [2]sim.NodeID)) {
		for _, a := range from {
			for _, b := range to {
				if a != b {
					do([2]sim.NodeID{a, b})
				}
			}
		}
	}
	each(func(way [2]sim.NodeID) { c.blocked[way]++ })
	c.World.After(long, "connections end", func() {
		each(func(way [2]sim.NodeID) {
			c.blocked[way]--
			for k, id := range way {
				if c.servers[id] != nil {
					c.World.Command(id, broadcast.Input{Kind: broadcast.Cut, Node: c.names[way[1-k]]})
				}
			}
		})
	})
}

// crash ends a server's life, and with it its connections, and begins the next
// one, of which then has the news.
func (c *Crowd) crash(id sim.NodeID, reboot time.Duration, then func(up broadcast.Input)) {
	life := c.servers[id].incarnation + 1
	c.World.Crash(id)
	c.servers[id] = nil
	c.notify(id, broadcast.Input{Kind: broadcast.Cut, Node: c.names[id]})
	c.World.After(reboot, "reboot", func() {
		s, err := c.server(id, life)
		if err != nil {
			panic(err)
		}
		c.servers[id] = s
		c.World.Restart(id, s)
		for other, living := range c.servers { // what a membership reports who joins
			if living != nil && sim.NodeID(other) != id {
				c.World.Command(id, broadcast.Input{Kind: broadcast.Up, Node: c.names[other], Incarnation: living.incarnation})
			}
		}
		then(broadcast.Input{Kind: broadcast.Up, Node: c.names[id], Incarnation: life})
	})
}

func (c *Crowd) notify(about sim.NodeID, in broadcast.Input) {
	for i, s := range c.servers {
		if s != nil && sim.NodeID(i) != about {
			c.World.Command(sim.NodeID(i), in)
		}
	}
}

// create makes a group from s.
func (c *Crowd) create(s *Server, members []sim.NodeID, shape broadcastmsg.Tree, delayed bool) (uint64, error) {
	id, err := s.core.CreateGroup(s.now, broadcast.Creation{
		Service: service, Name: "crowd", Targets: c.Targets(members), Tree: shape, Delayed: delayed,
	}, &s.out)
	s.settle()
	return id, err
}

func (c *Crowd) created(s *Server, call broadcast.Call) {
	c.groups[groupHandle{s.id, s.incarnation, call.Group}] = call.Err == nil
}

// ready reports whether a group of s's was created, and whether it succeeded.
func (c *Crowd) ready(s *Server, handle uint64) (answered, ok bool) {
	ok, answered = c.groups[groupHandle{s.id, s.incarnation, handle}]
	return answered, ok
}

// Send broadcasts from s to members over a group, with the number of the
// broadcast as its payload, and returns that number.
func (c *Crowd) Send(s *Server, members []sim.NodeID, b broadcast.Broadcast) int {
	number := len(c.broadcasts)
	b.Payload = binary.BigEndian.AppendUint64(nil, uint64(number))
	c.broadcasts = append(c.broadcasts, account{
		root: s.id, life: s.incarnation, members: members, runs: make(map[run]int, len(members)),
	})
	id, err := s.core.NewRequest(b)
	if err != nil { // never was a request
		c.broadcasts[number].ends, c.broadcasts[number].err = 1, err
		return number
	}
	c.broadcasts[number].request = id
	s.own[id] = number
	_ = s.core.Send(s.now, id, &s.out) // its End reports
	s.settle()
	return number
}

func (c *Crowd) ran(s *Server, number uint64) {
	c.LastRun = s.now
	if number >= uint64(len(c.broadcasts)) {
		c.wrong = append(c.wrong, fmt.Sprintf("%s ran broadcast %d, which was not made", c.names[s.id], number))
		return
	}
	b := &c.broadcasts[number]
	if b.runs[run{s.id, s.incarnation}]++; b.runs[run{s.id, s.incarnation}] > 1 {
		c.wrong = append(c.wrong, fmt.Sprintf("%s ran broadcast %d twice", c.names[s.id], number))
	}
}

// result notes what the root's service has collected.
func (c *Crowd) result(s *Server, request uint64, body []byte) {
	if number, ok := s.own[request]; ok {
		c.broadcasts[number].reported = body
	}
}

// checkRuns: nobody has run it whom it was not for.
func (c *Crowd) checkRuns(number int, b *account) {
	if b.members == nil {
		return
	}
	for r := range b.runs {
		if !slices.Contains(b.members, r.server) {
			c.wrong = append(c.wrong, fmt.Sprintf("broadcast %d was not for %s, which ran it", number, c.names[r.server]))
		}
	}
}

func (c *Crowd) ended(s *Server, e broadcast.End) {
	number, ok := s.own[e.Request]
	if !ok {
		return
	}
	b := &c.broadcasts[number]
	b.err = e.Err
	if b.ends++; b.ends > 1 {
		c.wrong = append(c.wrong, fmt.Sprintf("broadcast %d ended twice", number))
	}
	if e.Err == nil {
		c.checkSuccess(number, b)
	}
	b.reported = nil
}

// checkSuccess: every member ran it exactly once, and the replies of all are
// with the root.
func (c *Crowd) checkSuccess(number int, b *account) {
	heard := map[sim.NodeID]int{}
	for body := b.reported; len(body) >= 4; body = body[4:] {
		heard[sim.NodeID(binary.BigEndian.Uint32(body))]++
	}
	runs := map[sim.NodeID]int{}
	for r, n := range b.runs {
		runs[r.server] += n
	}
	for _, m := range b.members {
		if runs[m] != 1 || heard[m] != 1 {
			c.wrong = append(c.wrong, fmt.Sprintf("broadcast %d succeeded, but %s ran it %d times and is in %d replies", number, c.names[m], runs[m], heard[m]))
		}
	}
}
