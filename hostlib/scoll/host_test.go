package scoll_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
)

// sockets returns the sockets of this process on which something from outside can begin:
// TCP listeners, and UDP sockets, each with its port.
func sockets(t *testing.T) map[string]int {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil {
			if inode, ok := strings.CutPrefix(link, "socket:["); ok {
				own[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	const listens, local, state, inode = "0A", 1, 3, 9
	found := map[string]int{}
	for _, kind := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile("/proc/self/net/" + kind)
		if err != nil {
			continue // without IPv6, say
		}
		for _, line := range strings.Split(string(text), "\n")[1:] {
			f := strings.Fields(line)
			if len(f) <= inode || !own[f[inode]] || strings.HasPrefix(kind, "tcp") && f[state] != listens {
				continue
			}
			var port int
			if _, err := fmt.Sscanf(f[local][strings.IndexByte(f[local], ':')+1:], "%X", &port); err != nil {
				t.Fatal(err)
			}
			found[kind[:3]+" "+f[inode]] = port
		}
	}
	return found
}

// TestOneHost: membership, communicators, server collectives and bulk transfers of two hosts
// have one connection in a class: for heartbeats, requests and small replies, for what host
// trees reduce, and two for bulk data. TestOneHostOfThreeServices counts their sockets.
func TestOneHost(t *testing.T) {
	at := loopback.Address(t)
	c := start(t, 2, func(i int, cfg *config) {
		cfg.host.Membership, cfg.host.Resolve = &membership.Config{Bootstrap: []string{at}}, nil
		if i == 0 {
			cfg.host.Listen = at
		}
	})
	rolls := c.rolls()
	ctx := background(t)
	await(t, "both to be in the zone", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *server) bool {
			view, err := n.host.Members().View(ctx)
			return err != nil || len(view) != 2
		})
	})
	members := []hostlib.Member{c.nodes[0].host.Member(), c.nodes[1].host.Member()}
	comms := make([]*hostlib.Communicator, 2)
	var both sync.WaitGroup
	for i, n := range c.nodes {
		both.Go(func() {
			var err error
			if comms[i], err = n.host.Communicator(ctx, "job", members); err != nil {
				t.Error(err)
				return
			}
			v := []int32{int32(i + 1)}
			if _, err := hostlib.Allreduce(ctx, comms[i], reduce.Sum, v, v); err != nil || v[0] != 3 {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
	both.Wait()
	open := c.nodes[0].connections() // of the zone, and of the communicator
	for i := range c.nodes {         // from both sides
		for k := range 3 {
			g := c.group(i, scoll.GroupSpec{Name: fmt.Sprint(i, k)})
			if r, err := call(t, g, scoll.Broadcast{Bulk: [][]byte{make([]byte, 100_000)}}); err != nil || heard(r) != sorted(2) {
				t.Errorf("%v, %s", err, heard(r))
			}
		}
	}
	if n := len(rolls[1].has()); n != 6 {
		t.Errorf("%d requests ran", n)
	}
	for _, n := range c.nodes {
		if k := n.host.Connections(); k.Open > max(open, 1)+2 || k.Open > 4 || k.FramesIn == 0 || k.Unclaimed != 0 {
			t.Errorf("%+v, when there were %d before", k, open)
		}
	}
	for i, comm := range comms {
		if comm == nil {
			continue
		}
		both.Go(func() {
			if err := comm.Leave(ctx); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	both.Wait()
}

// TestOnTwice: a host has one node, and none after its Close; the errors say so.
func TestOnTwice(t *testing.T) {
	ctx := background(t)
	host, err := hostlib.Join(ctx, hostlib.Config{Name: "n0"})
	if err != nil {
		t.Fatal(err)
	}
	node, err := scoll.On(host, scoll.Config{})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(when string, want error) {
		t.Helper()
		if _, err := scoll.On(host, scoll.Config{}); !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "scoll: ") {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	refused("twice", hostlib.ErrService)
	if err := node.Close(ctx); err != nil {
		t.Error(err)
	}
	refused("after its node's Close", hostlib.ErrService)
	if err := host.Close(ctx); err != nil {
		t.Error(err)
	}
	refused("after Close", hostlib.ErrClosed)
	if _, err := scoll.On(nil, scoll.Config{}); !errors.Is(err, hostlib.ErrArgument) {
		t.Errorf("nowhere: %v", err)
	}
	if _, err := node.Register(1, silent(true)); !errors.Is(err, scoll.ErrClosed) {
		t.Errorf("a service of a node whose host is closed: %v", err)
	}
}

// TestHostClosesItsNode: whoever closes a host has closed the node, whose callbacks have
// returned, and a host whose node has not been closed in time says so.
func TestHostClosesItsNode(t *testing.T) {
	c := start(t, 2, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	r, release := rolls[1].holds(t, g)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.nodes[1].host.Close(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 callbacks have not returned") {
		t.Errorf("%v", err)
	}
	close(release)
	await(t, "the callback to return", func() bool { return c.nodes[1].Counters().Callbacks == 0 })
	<-r.Done()
	if m := missing(t, r.Err()); m.Node != "n1" {
		t.Errorf("%+v", m)
	}
	c.nodes = c.nodes[:1] // the other was cut off: it may hold what was not sent
}

// TestNodeClosesUnderway: a node is closed while requests run and bulk data move, and its
// host stays. Every request ends once, nothing is left, and the host's communicators go on.
func TestNodeClosesUnderway(t *testing.T) {
	c := start(t, 3, nil)
	c.rolls()
	ctx := background(t)
	g := c.group(0, scoll.GroupSpec{Name: "all", Tree: scoll.KAry(1)})
	bulk := [][]byte{make([]byte, 4<<20)}
	var under []*scoll.Request
	for i := range 40 {
		r, err := g.NewRequest(scoll.Broadcast{Bulk: bulk, Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		under = append(under, r)
		if i == 20 {
			<-under[0].Done()
			if err := c.nodes[1].Node.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	ran := 0
	for _, r := range under {
		select {
		case <-r.Done():
		case <-time.After(patience):
			t.Fatal("a request waits for a node that is closed")
		}
		if r.Err() == nil {
			ran++
		}
	}
	if ran == 0 {
		t.Error("no request has run before")
	}
	if k := c.nodes[1].Counters(); k.Requests+k.Callbacks+k.Waiting+k.Pulls+k.LentBuffers+k.ReplyBuffers+k.Exposed != 0 {
		t.Errorf("it holds %+v", k)
	}
	members := []hostlib.Member{c.nodes[0].host.Member(), c.nodes[1].host.Member()}
	var both sync.WaitGroup
	for _, n := range c.nodes[:2] {
		both.Go(func() {
			comm, err := n.host.Communicator(ctx, "afterwards", members)
			if err == nil {
				_, err = hostlib.Barrier(ctx, comm)
			}
			if err == nil {
				err = comm.Leave(ctx)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
}

// TestNotOnHost: a host on which there is no node, and one whose node is closed, are
// reported at once; when there is one, it takes part.
func TestNotOnHost(t *testing.T) {
	c := start(t, 2, nil)
	c.rolls()
	ctx := background(t)
	host, err := hostlib.Join(ctx, c.settings("late").host)
	if err != nil {
		t.Fatal(err)
	}
	c.set("late", host.Addr())
	defer func() {
		if err := host.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	targets := append(c.targets(), scoll.Target{Node: "late", Tags: []scoll.Tag{{}}})
	absent := scoll.Missing{Node: "late", Nodes: 1, Status: scoll.StatusNoService}
	_, err = c.tryGroup(0, scoll.GroupSpec{Name: "early", Targets: targets, Tree: scoll.Flat()})
	if m := missing(t, err); m != absent {
		t.Errorf("%+v", m)
	}
	if n := host.Connections().Unclaimed; n == 0 {
		t.Error("nothing is counted")
	}
	node, err := scoll.On(host, c.settings("late").Config)
	if err != nil {
		t.Fatal(err)
	}
	roll := &rollCall{node: "late"}
	if _, err := node.Register(testService, roll.callbacks()); err != nil {
		t.Fatal(err)
	}
	g := c.group(0, scoll.GroupSpec{Name: "in time", Targets: targets, Tree: scoll.Flat()})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != "late n0 n1" {
		t.Errorf("%v, %s", err, heard(r))
	}
	if err := node.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := call(t, g, scoll.Broadcast{}); missing(t, err) != absent {
		t.Errorf("%v", err)
	}
}
