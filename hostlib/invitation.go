package hostlib

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrDismissed: who might have invited this host needs it no more, by Host.DismissSpares.
var ErrDismissed = errors.New("hostlib: the spare is not needed any more")

// invitation is what a host says to another one that awaits invitations. It travels in a communicator
// of the two, a pair, in which the spare is rank 0: so it is the other that calls.
type invitation struct {
	Kind    invitationKind
	Name    string // of the communicator to join, as what follows
	Members []Member
	Options sentOptions
}

type invitationKind uint8

const (
	joins     invitationKind = 1 + iota // the pair is left once all are members, and ends otherwise if not
	asks                                // whether somebody awaits an invitation
	dismisses                           // nobody need await one
)

// sentOptions are groupOptions on their way to another host.
type sentOptions struct {
	Functions          topology.Functions
	Types              topology.Types
	BlockFloat         bool
	Compressed         reduce.Type
	Reproducible       bool
	Purpose            pathsel.Purpose
	Algorithms         []Algorithm
	OnTree, NoSwitches bool
	Stripes, Roots     int
	Protection         wire.Protection
}

func (t groupOptions) sent() sentOptions {
	return sentOptions{t.functions, t.types, t.blockFloat, t.compressed, t.reproducible, t.purpose, t.algorithms, t.onTree, t.noSwitches, t.stripes, t.roots, t.protection}
}

func (s sentOptions) option() GroupOption {
	return func(t *groupOptions) {
		*t = groupOptions{s.Functions, s.Types, s.BlockFloat, s.Compressed, s.Reproducible, s.Purpose, s.Algorithms, s.OnTree, s.NoSwitches, s.Stripes, s.Roots, s.Protection}
	}
}

const (
	pairPrefix    = "~invitation/" // of the names of pairs
	maxInvitation = 64 << 20       // bytes
	ofSpare       = 0              // ranks of a pair
	ofInviter     = 1
)

// pairName has what the two must know of each other beside their names.
func pairName(spare, inviter Member) string {
	return pairPrefix + spare.process() + "/" + spare.Addr + "/" + inviter.Addr
}

// pairMembers returns the members of the pair that a caller is the inviter of; false: it is none of
// this host's.
func (h *Host) pairMembers(k *caller) (members []Member, isOne bool) {
	rest, isPair := strings.CutPrefix(k.name, pairPrefix+processName(h.name, h.cfg.Process)+"/")
	addr, from, isWhole := strings.Cut(rest, "/")
	host := k.host()
	label := strings.TrimPrefix(strings.TrimPrefix(k.conn.Peer().Name, host), peering.Mark)
	return []Member{
		{Host: h.name, Process: h.cfg.Process, Addr: addr},
		{Host: host, Process: label, Addr: from},
	}, isPair && isWhole
}

// formPair forms the communicator of a spare and its inviter.
func (h *Host) formPair(ctx context.Context, members []Member) (*Communicator, error) {
	return h.single(ctx, pairName(members[ofSpare], members[ofInviter]), members, pairOptions, subcommunicator{onHosts: true})
}

var pairOptions = optionsOf([]GroupOption{OnTreeOfHosts()})

// endPair has the other side know that nothing comes of it.
func (h *Host) endPair(pair *Communicator, why string) {
	pair.Abort(why)
	h.endRecoveries(func(o *Communicator) bool { return o == pair })
}

// leavePair ends it in good order. An error says that the other side may not have.
func (h *Host) leavePair(ctx context.Context, pair *Communicator) error {
	err := pair.Leave(ctx)
	if err != nil {
		h.endPair(pair, "it was not left in good order")
	}
	return err
}

// invite waits until a spare awaits invitations, and gives it one. The caller ends what is returned.
func (h *Host) invite(ctx context.Context, from, spare Member, text []byte) (*Communicator, error) {
	spare.Leaf, from.Leaf = "", ""
	pair, err := h.formPair(ctx, []Member{spare, from})
	if err != nil {
		return nil, err
	}
	words := make([]uint32, (len(text)+3)/4)
	padded := append(text[:len(text):len(text)], 0, 0, 0)
	for i := range words {
		words[i] = binary.BigEndian.Uint32(padded[4*i:])
	}
	for _, v := range [][]uint32{{uint32(len(text))}, words} {
		if _, err := Broadcast(ctx, pair, ofInviter, v); err != nil {
			h.endPair(pair, "the invitation was withdrawn")
			return nil, err
		}
	}
	return pair, nil
}

// readInvitation is invite at the spare.
func readInvitation(ctx context.Context, pair *Communicator) (in invitation, err error) {
	size := []uint32{0}
	if _, err := Broadcast(ctx, pair, ofInviter, size); err != nil {
		return in, err
	}
	if size[0] > maxInvitation {
		return in, fmt.Errorf("%w: an invitation of %d bytes, want at most %d", ErrArgument, size[0], maxInvitation)
	}
	words := make([]uint32, (size[0]+3)/4)
	if _, err := Broadcast(ctx, pair, ofInviter, words); err != nil {
		return in, err
	}
	var text []byte
	for _, w := range words {
		text = binary.BigEndian.AppendUint32(text, w)
	}
	if err := json.Unmarshal(text[:size[0]], &in); err != nil {
		return in, fmt.Errorf("%w: a malformed invitation: %w", ErrArgument, err)
	}
	return in, nil
}

// AwaitInvitation waits until another host makes this one a member of a communicator that grows
// (Communicator.Grow), and returns that. The invitation has its name, its members, of which this
// host has to be one, and its options. Any host may invite that has a certificate of a trusted
// authority. If the inviter dies, or gives up, before all are members, the wait goes on, for
// whatever invitation is next. While nobody awaits them, invitations wait for half a minute, and
// are then repeated; a host keeps a bounded number. One call at a time takes them. Errors: ctx's;
// ErrDismissed if this host is not needed any more; ErrClosed.
func (h *Host) AwaitInvitation(ctx context.Context) (*Communicator, error) {
	select {
	case h.awaits <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("hostlib: awaiting an invitation: %w: another call goes on", context.Cause(ctx))
	}
	defer func() { <-h.awaits }()
	for {
		k, members, err := h.nextInvitation(ctx)
		if err != nil {
			return nil, fmt.Errorf("hostlib: awaiting an invitation: %w", err)
		}
		c, err := h.answer(ctx, members)
		h.unpark(func(o *caller) bool { return o == k })
		if c != nil || errors.Is(err, ErrDismissed) {
			return c, err
		}
		if err != nil {
			h.cfg.Log.Info("nothing came of an invitation", slog.String("peer", members[ofInviter].process()), slog.Any("reason", err))
		}
	}
}

// nextInvitation waits for a caller that is an inviter.
func (h *Host) nextInvitation(ctx context.Context) (*caller, []Member, error) {
	for ctx.Err() == nil {
		if k, members := h.parkedInvitation(); k != nil {
			return k, members, nil
		}
		select {
		case <-h.invited:
		case <-h.done:
			return nil, nil, h.Err()
		case <-ctx.Done():
		}
	}
	return nil, nil, context.Cause(ctx)
}

// parkedInvitation returns the oldest caller that is an inviter; nil: there is none.
func (h *Host) parkedInvitation() (*caller, []Member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range slices.Clone(h.parked.all) {
		switch members, is := h.pairMembers(k); {
		case !is:
		case k.group == digestOf(k.name, members, h.cfg.ChunkBytes, h.cfg.Window, pairOptions):
			return k, members
		default:
			h.parked.take(func(o *caller) bool { return o == k })
			k.refuse(fmt.Sprintf("%s has another ChunkBytes or Window", h.name))
		}
	}
	return nil, nil
}

// answer does what an inviter wants. Without an error and a communicator that is done.
func (h *Host) answer(ctx context.Context, members []Member) (*Communicator, error) {
	forming, cancel := context.WithTimeout(ctx, h.cfg.DeadAfter) // the inviter may have gone meanwhile
	defer cancel()
	pair, err := h.formPair(forming, members)
	if err != nil {
		return nil, err
	}
	c, err := h.obey(ctx, pair)
	if err != nil && !errors.Is(err, ErrDismissed) {
		h.endPair(pair, err.Error())
	}
	return c, err
}

func (h *Host) obey(ctx context.Context, pair *Communicator) (*Communicator, error) {
	reading, cancel := context.WithTimeout(ctx, h.cfg.DeadAfter) // others may want to invite this host, too
	in, err := readInvitation(reading, pair)
	cancel()
	switch {
	case err != nil:
		return nil, err
	case in.Kind == asks:
		return nil, h.leavePair(ctx, pair)
	case in.Kind == dismisses:
		_ = h.leavePair(ctx, pair) // what matters is known
		return nil, ErrDismissed
	case in.Kind != joins:
		return nil, fmt.Errorf("%w: an invitation of kind %d", ErrArgument, in.Kind)
	}
	joining, done := pair.untilEnd(ctx)
	defer done()
	c, err := h.Communicator(joining, in.Name, in.Members, in.Options.option())
	if err != nil {
		return nil, err
	}
	if err := h.leavePair(ctx, pair); err != nil { // the others may not be members, or believe that this one is not
		c.Abort("it does not know whether all have become members")
		return nil, err
	}
	return c, nil
}

// FindSpares returns spares that await an invitation: the first n to answer, or fewer if ctx ends
// before. They go on waiting.
func (h *Host) FindSpares(ctx context.Context, spares []Member, n int) []Member {
	if n <= 0 {
		return nil
	}
	found := make(chan Member, len(spares))
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	go h.inviteEach(ctx, spares, asks, found)
	var all []Member
	for m := range found {
		if all = append(all, m); len(all) == n {
			enough()
		}
	}
	return all[:min(n, len(all))]
}

// DismissSpares has AwaitInvitation return ErrDismissed at spares, and returns those at which it has.
// It waits for those that have not called it until ctx ends.
func (h *Host) DismissSpares(ctx context.Context, spares []Member) []Member {
	done := make(chan Member, len(spares))
	h.inviteEach(ctx, spares, dismisses, done)
	var all []Member
	for m := range done {
		all = append(all, m)
	}
	return all
}

// inviteEach says the same to each of spares, and reports and closes who has heard it.
func (h *Host) inviteEach(ctx context.Context, spares []Member, kind invitationKind, heard chan<- Member) {
	defer close(heard)
	text, err := json.Marshal(invitation{Kind: kind})
	if err != nil {
		panic(err) // of a struct of plain fields
	}
	var all sync.WaitGroup
	for _, m := range spares {
		all.Go(func() {
			pair, err := h.invite(ctx, h.Member(), m, text)
			if err != nil {
				return
			}
			// Also when others have answered: a spare that has left waits for the goodbye of this host.
			if h.leavePair(h.ctx, pair) == nil {
				heard <- m
			}
		})
	}
	all.Wait()
}

// isInvitation reports whether a parked caller may be an inviter.
func (k *caller) isInvitation() bool {
	return k.conn.Class() == peer.Control && strings.HasPrefix(k.name, pairPrefix)
}
