package servers

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

var (
	broadcasts = flag.Int("broadcasts", 3000, "how many broadcasts TestStories makes")
	perStory   = flag.Int("each", 300, "how many of them a story has")
	one        = flag.Uint64("story", 0, "report this story alone")
)

// TestStories: random broadcasts over random groups and trees, with deaths,
// reboots, restarts elsewhere before the death is known, servers that hear or say
// only a part, filters, losses, aborts and panics. The root completes or fails exactly once;
// success means that every member ran it exactly once; nothing leaks. 100,000
// of them, or as many stories:
//
//	go test -run Stories ./internal/sim/servers -broadcasts 100000
//	go test -run Stories ./internal/sim/servers -broadcasts 500000 -each 5
func TestStories(t *testing.T) {
	if *one > 0 {
		var all tally
		if err := notify(*one, &all); err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", all)
		return
	}
	var all tally
	for seed := uint64(1); all.Made < *broadcasts; seed++ {
		if err := notify(seed, &all); err != nil {
			t.Fatalf("story %d: %v", seed, err)
		}
	}
	t.Logf("%+v", all)
	if all.Succeeded < all.Made/4 || all.Incomplete == 0 || all.Dead == 0 || all.Orphaned == 0 || all.Reboots == 0 || all.Moves == 0 || all.Blocks == 0 || all.Recalled == 0 || all.Filtered < all.Made/8 || all.Aborted == 0 || all.Failed == 0 || all.Proven < all.Made/4 || all.Replays == 0 {
		t.Errorf("the stories have not seen everything: %+v", all)
	}
}

// tally is what stories have seen.
type tally struct {
	Made, Succeeded       int
	Incomplete            int // not all members are known to have run it
	Dead                  int // refused, since a member was dead
	Failed, Aborted       int // by the root's own service
	Orphaned              int // the root died
	Other                 int // refused before it was a request
	Deaths, Reboots       int
	Moves                 int // to another address, before the death was known
	Blocks                int // a server that heard or said only a part, or a connection
	Recalled              int // missing, since its connection ended and it could not be called again
	Filtered              int // for some members alone
	Copies, Unmatched     uint64
	Retries, Refusals     uint64
	Groups, FailedPopular int
	Proven, Replays       int    // broadcasts that had to be proven; requests that were sent again by others
	Unproven              uint64 // refused, whose root was of another life or could not be asked
}

// story is a crowd with a plan.
type story struct {
	*Crowd
	rand  *rand.Rand
	tally *tally
	clubs []*club
	loss  bool
}

// club is a group in the story, known to its owner.
type club struct {
	owner    *Server
	members  []sim.NodeID
	handle   uint64
	oob      *broadcast.Members
	subset   bool
	perished bool
}

const servers = 20

func notify(seed uint64, all *tally) error {
	r := rand.New(rand.NewPCG(seed, 77))
	cfg := sim.DefaultConfig(seed)
	cfg.Link = sim.Link{Delay: 10 * time.Microsecond, Jitter: 20 * time.Microsecond, Stray: 300 * time.Microsecond, Duplicate: 0.01, Reorder: 0.02}
	calm, proven := seed%3 == 0, seed%2 == 0
	habits := Habits{Gap: time.Microsecond, Callback: 200 * time.Microsecond, Pull: 50 * time.Microsecond, Late: 0.1, Early: 0.1, Twice: 0.05}
	if !calm {
		cfg.Link.Loss = 0.002
		habits.SendFails, habits.PullFails = 0.01, 0.005
		habits.Refuses, habits.NoBuffer, habits.SmallRoom = 0.002, 0.002, 0.002
		habits.Fails, habits.ReplyFails, habits.PostFails = 0.002, 0.002, 0.002
		habits.Forgets, habits.Aborts = 0.002, 0.002
	}
	if proven {
		habits.Replays = 0.05
	}
	w, err := sim.New(cfg)
	if err != nil {
		return err
	}
	s := &story{Crowd: NewCrowd(w, servers, habits), rand: r, tally: all, loss: !calm}
	s.Config = func(n broadcastmsg.Node, life uint64) broadcast.Config {
		c := broadcast.DefaultConfig(n, life)
		c.RoundTrip, c.RetryAfter, c.Linger = 2*time.Millisecond, 100*time.Microsecond, 10*time.Millisecond
		if proven {
			key := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", seed, n, life))
			c.Key, c.Secret = ed25519.NewKeyFromSeed(key[:]), [16]byte(key[:])
		}
		c.Receive, c.Patience, c.RecallAfter = 8, 2*time.Millisecond, 50*time.Microsecond
		return c
	}
	if err := s.Start(); err != nil {
		return err
	}
	for i := range *perStory {
		w.After(time.Duration(i)*150*time.Microsecond, "broadcast", s.act)
	}
	if err := w.Run(); err != nil {
		return err
	}
	return s.check()
}

// act is what happens at one moment: a broadcast, and perhaps a death.
func (s *story) act() {
	if s.loss && s.rand.IntN(60) == 0 {
		s.kill()
	}
	if s.loss && s.rand.IntN(60) == 0 {
		s.block()
	}
	c := s.club()
	if c == nil {
		return
	}
	s.World.Command(c.owner.id, func(owner *Server) {
		if owner == c.owner {
			s.broadcast(c)
		}
	})
}

func (s *story) kill() {
	id := sim.NodeID(s.rand.IntN(servers))
	if s.servers[id] == nil {
		return
	}
	announced, reboot := 300*time.Microsecond, 2*time.Millisecond
	switch s.rand.IntN(3) {
	case 0:
		announced, reboot = 0, 50*time.Microsecond // too quick for anybody to see it dead
		s.tally.Reboots++
	case 1:
		s.Move(id, 50*time.Microsecond, announced) // it is seen dead when it lives again
		s.tally.Moves++
		return
	default:
		s.tally.Deaths++
	}
	s.Kill(id, announced, reboot)
}

// block has a server hear nothing, or say nothing, for a while, or one other not
// hear it.
func (s *story) block() {
	one, all := []sim.NodeID{sim.NodeID(s.rand.IntN(servers))}, []sim.NodeID{}
	for id := range servers {
		all = append(all, sim.NodeID(id))
	}
	from, to := one, all
	switch s.rand.IntN(4) {
	case 0:
		from, to = all, one
	case 1, 2:
		to = []sim.NodeID{sim.NodeID(s.rand.IntN(servers))}
	}
	s.Block(from, to, time.Duration(s.rand.IntN(2000))*time.Microsecond)
	s.tally.Blocks++
}

// club returns a group whose owner lives, often a new one.
func (s *story) club() *club {
	if len(s.clubs) > 4 && s.rand.IntN(20) > 0 {
		for range 10 {
			c := s.clubs[s.rand.IntN(len(s.clubs))]
			answered, ok := s.ready(c.owner, c.handle)
			if s.servers[c.owner.id] == c.owner && !c.perished && (c.oob != nil || answered && ok) {
				return c
			}
		}
	}
	owner := s.servers[s.rand.IntN(servers)]
	if owner == nil {
		return nil
	}
	c := &club{owner: owner, subset: s.rand.IntN(5) == 0}
	for _, i := range s.rand.Perm(servers)[:1+s.rand.IntN(servers)] {
		if sim.NodeID(i) != owner.id {
			c.members = append(c.members, sim.NodeID(i))
		}
	}
	at := s.rand.IntN(len(c.members) + 1)
	c.members = append(c.members[:at:at], append([]sim.NodeID{owner.id}, c.members[at:]...)...)
	shapes := []broadcastmsg.Tree{{Kind: broadcastmsg.KNomial, Radix: 2}, {Kind: broadcastmsg.KNomial, Radix: 4}, {Kind: broadcastmsg.KAry, Radix: 2}, {Kind: broadcastmsg.KAry, Radix: 1}, {Kind: broadcastmsg.Flat}}
	shape := shapes[s.rand.IntN(len(shapes))]
	kind := s.rand.IntN(3)
	s.World.Command(owner.id, func(at *Server) {
		if at == owner {
			s.found(c, shape, kind)
		}
	})
	s.clubs = append(s.clubs, c)
	return c
}

// found makes the group of a club.
func (s *story) found(c *club, shape broadcastmsg.Tree, kind int) {
	var err error
	if kind == 2 {
		index := broadcastmsg.Index{1, byte(len(s.mapping)), byte(len(s.mapping) >> 8)}
		if c.oob, err = broadcast.NewMembers(service, s.Targets(c.members)); err == nil {
			s.mapping[index] = c.oob
			c.handle, err = c.owner.core.CreateOutOfBand(service, index, shape)
		}
	} else {
		c.handle, err = s.create(c.owner, c.members, shape, kind == 1)
	}
	if err != nil {
		panic(err)
	}
	s.tally.Groups++
}

// broadcast makes one over a club, perhaps its last.
func (s *story) broadcast(c *club) {
	members := c.members
	b := broadcast.Broadcast{Group: c.handle, Patience: 2 * time.Millisecond, Members: c.oob}
	answered, ok := s.ready(c.owner, c.handle)
	if c.oob == nil && (!answered || !ok) {
		if answered {
			c.perished = true
			s.tally.FailedPopular++
		}
		return
	}
	if s.rand.IntN(4) == 0 {
		b.Bulk = 1000
	}
	switch {
	case c.subset && s.rand.IntN(2) == 0:
		handle, err := c.owner.core.Subset(c.handle)
		if err != nil {
			return
		}
		b.Group = handle
		members = s.believedAlive(c, handle)
	case s.rand.IntN(40) == 0:
		b.Last, c.perished = true, true
	}
	if !b.Last && s.rand.IntN(3) == 0 {
		if members = s.filter(&b, c, members); members != nil && len(members) == 0 {
			return // nobody is left
		}
		s.tally.Filtered++
	}
	number := s.Send(c.owner, members, b)
	s.tally.Made++
	if s.loss && s.rand.IntN(50) == 0 {
		id := s.Crowd.broadcasts[number].request
		c.owner.at(c.owner.upTo(time.Millisecond), func() { c.owner.abort(id) })
	}
}

// filter makes a broadcast one for some members, of whom those who may be meant
// remain.
func (s *story) filter(b *broadcast.Broadcast, c *club, may []sim.NodeID) []sim.NodeID {
	chosen := map[sim.NodeID]bool{}
	if s.rand.IntN(2) == 0 {
		b.Only = []broadcastmsg.Node{}
	}
	for _, m := range c.members {
		few := s.rand.IntN(3) == 0
		switch {
		case b.Only == nil && few:
			b.Except = append(b.Except, s.names[m])
		case b.Only == nil:
			chosen[m] = true
		case few:
			b.Only = append(b.Only, s.names[m])
			chosen[m] = true
		}
	}
	if may == nil && len(chosen) > 0 {
		return nil
	}
	left := []sim.NodeID{}
	for _, m := range may {
		if chosen[m] {
			left = append(left, m)
		}
	}
	return left
}

// believedAlive returns the members of a subset as its root believes.
func (s *story) believedAlive(c *club, handle uint64) []sim.NodeID {
	branches, err := c.owner.core.Children(handle, c.oob)
	if err != nil {
		return c.members
	}
	nodes := 1
	for _, b := range branches {
		nodes += b.Nodes
	}
	var alive []sim.NodeID
	for _, m := range c.members {
		if s.servers[m] != nil {
			alive = append(alive, m)
		}
	}
	if len(alive) != nodes {
		return nil // the root is behind the times: its outcome alone is checked
	}
	return alive
}

// check closes the books.
func (s *story) check() error {
	if len(s.wrong) > 0 {
		return fmt.Errorf("%d wrong, the first: %s", len(s.wrong), s.wrong[0])
	}
	for number := range s.Crowd.broadcasts {
		b := &s.Crowd.broadcasts[number]
		if s.checkRuns(number, b); len(s.wrong) > 0 {
			return errors.New(s.wrong[0])
		}
		root := s.servers[b.root]
		gone := root == nil || root.incarnation != b.life
		if b.ends == 0 && !gone {
			return fmt.Errorf("broadcast %d has no end", number)
		}
		s.count(b)
	}
	for i, at := range s.servers {
		if at == nil {
			return fmt.Errorf("server %d did not come back", i)
		}
		n := at.core.Counters()
		if n.LentBuffers != 0 || n.Posted != 0 || n.Exposed != 0 || n.Requests != 0 || len(at.exposed) != 0 || at.due.Len() != 0 {
			return fmt.Errorf("server %d leaks: %+v, %d exposed", i, n, len(at.exposed))
		}
		if alive := s.knownAlive(at); alive != servers {
			return fmt.Errorf("server %d knows of %d servers that live, of %d", i, alive, servers)
		}
		s.tally.Copies += n.Copies
		s.tally.Unmatched += n.Unmatched
		s.tally.Retries += n.Retries
		s.tally.Refusals += n.Refusals
		s.tally.Unproven += n.Unproven
	}
	if s.Habits.Replays > 0 {
		s.tally.Proven += len(s.Crowd.broadcasts)
		s.tally.Replays += s.replays
	}
	return nil
}

// knownAlive returns how many servers one holds for alive.
func (s *story) knownAlive(at *Server) int {
	var everybody []sim.NodeID
	for id := range servers {
		everybody = append(everybody, sim.NodeID(id))
	}
	all, err := broadcast.NewMembers(service, s.Targets(everybody))
	if err != nil {
		panic(err)
	}
	group, err := at.core.CreateOutOfBand(service, broadcastmsg.Index{2}, broadcastmsg.Tree{Kind: broadcastmsg.Flat})
	if err != nil {
		panic(err)
	}
	alive, err := at.core.Subset(group)
	if err != nil {
		panic(err)
	}
	branches, err := at.core.Children(alive, all)
	if err != nil {
		panic(err)
	}
	return 1 + len(branches)
}

func (s *story) count(b *account) {
	var incomplete *broadcast.IncompleteError
	var status *broadcast.StatusError
	switch t := s.tally; {
	case b.ends == 0:
		t.Orphaned++
	case b.err == nil:
		t.Succeeded++
	case errors.As(b.err, &incomplete):
		t.Incomplete++
		for i := range incomplete.Missing {
			if incomplete.Missing[i].Status == broadcastmsg.Unsent {
				t.Recalled++
			}
		}
	case errors.Is(b.err, broadcast.ErrDead):
		t.Dead++
	case errors.As(b.err, &status) && status.Status == broadcastmsg.Aborted:
		t.Aborted++
	case errors.As(b.err, &status):
		t.Failed++
	default:
		t.Other++
	}
}
