package hostlib

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/rank"
	"github.com/tributary-fabric/tributary/internal/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
)

const (
	retryMin = 50 * time.Millisecond // after a failed call to the manager; doubles
	retryMax = 5 * time.Second

	releaseTimeout = 2 * time.Second

	maxGroupName = 200 // bytes of a communicator's name in that of the manager's group
)

// again calls f until it succeeds, fails for good, or ctx ends, with longer
// and longer pauses. It tells of every failure and returns the last.
func again(ctx context.Context, isForGood func(error) bool, f func() error, tell func(error)) error {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		begun := time.Now()
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		tell(err)
		if isForGood(err) {
			return err
		}
		if time.Since(begun) > retryMax {
			pause = retryMin // it had worked for a while
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// creating makes the group at the manager, on behalf of all members, and tells
// them its number, or why there is none.
func (c *Communicator) creating() {
	_ = again(c.ctx, isForGood, func() error {
		_, err := c.create(c.ctx)
		return err
	}, c.tellWhyNot)
}

// wishes returns what the group is to be.
func (c *Communicator) wishes() manager.Create {
	g := manager.Create{
		Name: groupName(c.name, c.own), ChunkBytes: c.host.set.chunkBytes, Window: c.host.set.window,
		Functions: c.terms.functions, Types: c.terms.onSwitches(), Purpose: c.terms.purpose, Bundle: c.bundle(),
	}
	for _, m := range c.members {
		g.Members = append(g.Members, m.Host)
	}
	return g
}

// groupName returns the name at the manager of the group that the lowest rank's
// attempt makes.
func groupName(communicator string, lowest attempt) string {
	return fmt.Sprintf("%s/%016x", strings.ToValidUTF8(communicator[:min(len(communicator), maxGroupName)], "?"), uint64(lowest))
}

// create asks the manager for the group, which it makes unless it has it, and
// tells all members its number.
func (c *Communicator) create(ctx context.Context) (uint32, error) {
	terms := c.wishes()
	_, _ = rand.Read(terms.Secret[:]) // it never fails
	group, _, err := c.manager.CreateGroup(ctx, terms)
	if err == nil {
		c.post(item{in: rank.Input{Kind: rank.Notice, News: &rank.News{Notice: wire.Notice{Group: group}}}})
	}
	return group, err
}

// tellWhyNot tells all members why the manager has no group of theirs.
func (c *Communicator) tellWhyNot(err error) {
	c.post(item{in: rank.Input{Kind: rank.Notice, News: &rank.News{Notice: wire.Notice{Reason: err.Error()}}}})
}

// noticed takes what the manager said to rank 0: the group's number, under
// which every member watches, or why there is none.
func (s *stepper) noticed(n *wire.Notice) {
	if s.manager == nil || n.Group != 0 && s.managed == n.Group {
		return
	}
	if s.unwatch != nil {
		s.unwatch()
	}
	if n.Group == 0 {
		s.managed, s.unwatch = 0, nil
		s.number.Store(0)
		s.settle("no tree of switches: " + n.Reason)
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.managed, s.unwatch = n.Group, cancel
	s.number.Store(n.Group)
	s.tell(report{group: n.Group})
	s.tasks.Go(func() { s.watchGroup(ctx, n.Group) })
}

// watchGroup listens to the manager until ctx ends. A manager that was away may
// have lost the group, with its memory, and may even have given its number to
// another one. So rank 0 first asks for the group again, and all members are
// told if it has another number; if not, the others only have to ask again.
func (c *Communicator) watchGroup(ctx context.Context, group uint32) {
	w := manager.Watch{Group: group, Rank: uint32(c.rank), DataAddr: c.conn.LocalAddr()}
	final := func(err error) bool { return isForGood(err) && !errors.Is(err, manager.ErrUnknownGroup) }
	isAgain := false
	_ = again(ctx, final, func() error {
		if isAgain && c.rank == 0 {
			if now, err := c.create(ctx); err != nil || now != group {
				return err
			}
		}
		if isAgain { // it may have forgotten what the members told
			_ = c.loop.Do(ctx, func() { c.tell(report{}) }) // the loop's end is the group's
		}
		isAgain = true
		c.mu.Lock()
		w.Entered = c.status.epoch
		c.mu.Unlock()
		if err := c.manager.WatchGroup(ctx, w, c.event); err != nil {
			return err
		}
		return errStreamEnded
	}, func(err error) {
		c.settle("no tree of switches: " + err.Error())
		if c.rank == 0 && final(err) {
			c.tellWhyNot(err)
		}
	})
}

var errStreamEnded = errors.New("hostlib: the manager has ended the stream")

// event takes one word of the manager's.
func (c *Communicator) event(e rpc.GroupEvent) error {
	switch {
	case e.Offer != nil:
		c.mu.Lock()
		c.status.learn(e.Offer)
		c.mu.Unlock()
		c.post(item{in: rank.Input{Kind: rank.Offer, News: &rank.News{Link: linkOf(e.Offer)}}})
	case e.Withdrawal != nil:
		c.post(item{in: rank.Input{Kind: rank.Withdraw, News: &rank.News{Epoch: e.Withdrawal.Epoch, Reason: e.Withdrawal.Why}}})
	case e.Notice != nil && e.Notice.Err != nil:
		c.settle("no tree of switches: " + e.Notice.Err.Error())
		if e.Notice.End {
			return e.Notice.Err
		}
	}
	return nil
}

// report is what a member tells the manager.
type report struct {
	group   uint32 // the manager's number, once it is known
	entered uint32
	offload bool
	lost    uint32
	silent  bool
	demand  uint32 // of rank 0: window that the operations can use; 0: no news
	reason  string // of the loss
}

// merge returns the news of r and then s.
func (r report) merge(s report) report {
	if s.entered == 0 {
		s.entered, s.offload = r.entered, r.offload
	}
	if s.lost == 0 {
		s.lost, s.silent, s.reason = r.lost, r.silent, r.reason
	}
	if s.group == 0 {
		s.group = r.group
	}
	if s.demand == 0 {
		s.demand = r.demand
	}
	return s
}

func (r report) message(rank int) manager.Report {
	m := manager.Report{
		Group: r.group, Rank: uint32(rank), Entered: r.entered, Way: manager.HostTree,
		Lost: r.lost, Silent: r.silent, Reason: r.reason, Demand: r.demand,
	}
	if r.offload {
		m.Way = manager.Offload
	}
	return m
}

// news is what the manager is to know. A goroutine tells it, while there is
// something new.
type news struct {
	mu      sync.Mutex
	all     report // what has come so far
	isFresh bool   // not all of it was told
	telling bool
}

// tell has the manager told, once the group has a number. It is the loop's alone.
func (c *Communicator) tell(r report) {
	if c.manager == nil {
		return
	}
	n := &c.news
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all, n.isFresh = n.all.merge(r), true
	if n.all.group != 0 && !n.telling { // until then, the Watch will tell the epoch
		n.telling = true
		c.tasks.Go(c.reporting)
	}
}

// take returns all news, which are not new any more.
func (n *news) take() report {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isFresh = false
	return n.all
}

// told forgets what is reported once, unless more has come, and reports whether to
// go on with that.
func (n *news) told(hasEnded bool) (more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.isFresh {
		n.all.lost, n.all.silent, n.all.reason = 0, false, ""
	}
	n.telling = n.isFresh && !hasEnded
	return n.telling
}

// reporting tells the manager the news, until there are none.
func (c *Communicator) reporting() {
	for more := true; more; more = c.news.told(c.ctx.Err() != nil) {
		_ = again(c.ctx, isForGood, func() error {
			return c.manager.ReportEpoch(c.ctx, c.news.take().message(c.rank))
		}, func(err error) {
			c.host.set.log.Debug("cannot report to the manager",
				slog.String("communicator", c.name), slog.Any("error", err))
		})
	}
}

// release tells the manager on behalf of all members that the group is done.
// If it cannot be told, it finds out by itself that nobody watches.
func (c *Communicator) release() {
	group := c.news.take().group
	if group == 0 || c.rank != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := c.manager.ReleaseGroup(ctx, group); err != nil {
		c.host.set.log.Info("cannot release the group",
			slog.String("communicator", c.name), slog.Any("error", err))
	}
}
