package rail

import (
	"strings"
	"testing"
)

// rig is one Peer of which a test plays the transport and the other side.
type rig struct {
	t     *testing.T
	p     *Peer
	out   Output
	sent  []Frame // outstanding
	kinds []string
	other uint64 // the other side's request
	own   uint64
	state func() string
	s     SendRequest
	r     RecvRequest
	// restart is the number that the request has now.
	restart func() uint32
}

func newRig(t *testing.T, c Config) *rig {
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, p: p, other: 7<<32 | 3}
	for class := range classes {
		p.PathUp(0, class, 1, 0, 0, &g.out)
		p.PathUp(1, class, 1, 0, 0, &g.out)
	}
	g.flush()
	return g
}

// flush notes what the Peer has put out.
func (g *rig) flush() {
	for _, f := range g.out.Frames {
		k := kind(f.Head[0])
		g.kinds = append(g.kinds, k.String())
		g.sent = append(g.sent, Frame{Number: f.Number, Head: append([]byte(nil), f.Head...), Class: f.Class})
	}
	g.out.Reset()
}

// complete reports the completion of the first outstanding fragment of a kind.
func (g *rig) complete(k kind, ok bool) bool {
	for i, f := range g.sent {
		if kind(f.Head[0]) == k {
			g.sent = append(g.sent[:i:i], g.sent[i+1:]...)
			g.p.Sent(f.Number, ok, 0, &g.out)
			g.flush()
			return true
		}
	}
	return false
}

// owns returns the outstanding fragments that are none of the dance's.
func (g *rig) owns() (all []kind) {
	for _, f := range g.sent {
		switch k := kind(f.Head[0]); k {
		case kindNotify, kindRecvErr, kindRestartAck, kindNack, kindFin, kindRecvFin:
		default:
			all = append(all, k)
		}
	}
	return all
}

// arrive lets a fragment come.
func (g *rig) arrive(k kind, restart uint32, body []byte, set map[field]uint64) bool {
	h := head{kind: k}
	h.words[fieldRestart] = uint64(restart)
	for f, v := range set {
		h.words[f] = v
	}
	if err := g.p.Arrived(0, layouts[k].class, append(h.append(nil), body...), 0, &g.out); err != nil {
		g.t.Fatalf("%s: %v", k, err)
	}
	g.flush()
	return true
}

// ends completes one own fragment: the last thing that is outstanding, or not the last.
func (g *rig) ends(ok, isLast bool) bool {
	all := g.owns()
	if len(all) == 0 || isLast != (len(g.sent) == 1) {
		return false
	}
	return g.complete(all[0], ok)
}

// sends puts a sender into a state.
func sends(t *testing.T, state string) *rig {
	c := Config{Eager: 1, Fragment: 8, GetFrom: 1}
	if state == "finishing" {
		c.GetFrom = 0
	}
	g := newRig(t, c)
	s := &g.s
	*s = SendRequest{Data: make([]byte, 16)}
	g.state = func() string { return s.state.String() }
	g.p.Send(s, 0, &g.out)
	g.flush()
	g.own = s.id
	last := uint32(0)
	g.restart = func() uint32 {
		if s.state != gone {
			last = s.restart
		}
		return last
	}
	answer := func(k kind) {
		g.arrive(k, g.restart(), nil, map[field]uint64{fieldSending: g.own, fieldReceiving: g.other, fieldSize: 16, fieldKey: s.key})
	}
	steps := map[string]func(){
		"offered":   func() {},
		"streaming": func() { answer(kindRead); g.complete(kindRget, true) },
		"finishing": func() {
			answer(kindPut)
			g.complete(kindRndv, true)
			g.complete(kindWrite, true)
			g.complete(kindWrite, true)
		},
		"draining":  func() { g.complete(kindData, false) },
		"notifying": func() { g.complete(kindData, false) },
		"waiting":   func() { g.complete(kindNotify, true) },
		"answered":  func() { answer(kindRestartAck) },
		"ending":    func() { answer(kindNack) },
		"gone":      func() { answer(kindNack) },
	}
	ways := map[string]string{
		"offered": "offered", "streaming": "streaming", "finishing": "finishing", "draining": "streaming draining",
		"notifying": "streaming draining notifying", "waiting": "streaming draining notifying waiting",
		"answered": "streaming draining notifying answered", "ending": "streaming draining notifying ending",
		"gone": "streaming draining notifying waiting gone",
	}
	for _, step := range strings.Fields(ways[state]) {
		steps[step]()
	}
	g.restart()
	return g
}

// senderInputs are what can come to a sender. They report whether it can come in its state.
var senderInputs = map[string]func(g *rig) bool{
	"own fragment fails":          func(g *rig) bool { return g.ends(false, false) },
	"own fragment completes":      func(g *rig) bool { return g.ends(true, false) },
	"last own fragment fails":     func(g *rig) bool { return g.ends(false, true) },
	"last own fragment completes": func(g *rig) bool { return g.ends(true, true) },
	"RNDVRESTARTNOTIFY fails":     func(g *rig) bool { return g.complete(kindNotify, false) },
	"RNDVRESTARTNOTIFY completes": func(g *rig) bool { return g.complete(kindNotify, true) },
	"FIN fails":                   func(g *rig) bool { return g.complete(kindFin, false) },
	"FIN completes":               func(g *rig) bool { return g.complete(kindFin, true) },
	"RECVERRNOTIFY":               func(g *rig) bool { return g.toSender(kindRecvErr, 0) },
	"RNDVRESTARTACK":              func(g *rig) bool { return g.toSender(kindRestartAck, 0) },
	"RNDVRESTARTNACK":             func(g *rig) bool { return g.toSender(kindNack, 0) },
	"FIN":                         func(g *rig) bool { return g.toSender(kindRecvFin, 0) },
	"late RECVERRNOTIFY":          func(g *rig) bool { return g.toSender(kindRecvErr, 1) },
	"late RNDVRESTARTACK":         func(g *rig) bool { return g.toSender(kindRestartAck, 1) },
	"late RNDVRESTARTNACK":        func(g *rig) bool { return g.toSender(kindNack, 1) },
	"late READ":                   func(g *rig) bool { return g.toSender(kindRead, 1) },
}

func (g *rig) toSender(k kind, age uint32) bool {
	return g.arrive(k, g.restart()-age, nil, map[field]uint64{fieldSending: g.own, fieldReceiving: g.other, fieldSize: 16})
}

// receives puts a receiver into a state.
func receives(t *testing.T, state string) *rig {
	g := newRig(t, Config{Eager: 1, Fragment: 8})
	r := &g.r
	*r = RecvRequest{Data: make([]byte, 16)}
	g.state = func() string { return stateOf(r) }
	last := uint32(0)
	g.restart = func() uint32 {
		if r.state != recvGone {
			last = r.restart
		}
		return last
	}
	if state == "unmatched" || state == "awaited" {
		u := func() *RecvRequest { return g.p.box.arrived[0].first }
		g.state = func() string {
			switch {
			case r.state != 0:
				return stateOf(r)
			case u().isAwaited:
				return "awaited"
			}
			return u().state.String()
		}
		g.restart = func() uint32 {
			if u() != nil {
				return u().restart
			}
			return r.restart
		}
	} else {
		g.p.Recv(r, 0, &g.out)
	}
	g.rndv(0)
	g.own = r.id
	steps := map[string]func(){
		"unmatched": func() {},
		"awaited":   func() { g.toReceiver(kindNotify, 1) },
		"taking":    func() {},
		"confirmed": func() { g.complete(kindAck, true) },
		"draining":  func() { g.toReceiver(kindNotify, 1); g.rndv(0); g.complete(kindAck, false) },
		"asking":    func() { g.complete(kindAck, false) },
		"resetting": func() { g.toReceiver(kindNotify, 1) },
		"overtaken": func() { g.toReceiver(kindNotify, 1); g.rndv(0) },
		"ready":     func() { g.toReceiver(kindNotify, 1) },
		"gone":      func() { g.all() },
	}
	ways := map[string]string{"draining": "confirmed draining", "ready": "confirmed ready", "gone": "confirmed gone"}
	way := ways[state]
	if way == "" {
		way = state
	}
	for _, step := range strings.Fields(way) {
		steps[step]()
	}
	g.restart()
	return g
}

func (g *rig) rndv(next uint32) bool {
	return g.arrive(kindRndv, g.restart()+next, nil, map[field]uint64{fieldSending: g.other, fieldReceiving: g.own, fieldSize: 16})
}

func (g *rig) toReceiver(k kind, next uint32) bool {
	return g.arrive(k, g.restart()+next, nil, map[field]uint64{fieldSending: g.other, fieldReceiving: g.own})
}

// all lets all data come.
func (g *rig) all() bool {
	for at := range 2 {
		g.arrive(kindFrag, g.restart(), make([]byte, 8), map[field]uint64{fieldReceiving: g.own, fieldOffset: uint64(at) * 8})
	}
	return true
}

// receiverInputs are what can come to a receiver.
var receiverInputs = map[string]func(g *rig) bool{
	"own fragment fails":          func(g *rig) bool { return g.ends(false, false) },
	"own fragment completes":      func(g *rig) bool { return g.ends(true, false) },
	"last own fragment fails":     func(g *rig) bool { return g.ends(false, true) },
	"last own fragment completes": func(g *rig) bool { return g.ends(true, true) },
	"RECVERRNOTIFY fails":         func(g *rig) bool { return g.complete(kindRecvErr, false) },
	"RECVERRNOTIFY completes":     func(g *rig) bool { return g.complete(kindRecvErr, true) },
	"RNDVRESTARTACK fails":        func(g *rig) bool { return g.complete(kindRestartAck, false) },
	"RNDVRESTARTACK completes":    func(g *rig) bool { return g.complete(kindRestartAck, true) },
	"RNDVRESTARTNOTIFY":           func(g *rig) bool { return g.toReceiver(kindNotify, 0) },
	"next RNDVRESTARTNOTIFY":      func(g *rig) bool { return g.toReceiver(kindNotify, 1) },
	"late RNDVRESTARTNOTIFY": func(g *rig) bool {
		return g.state() != "gone" && g.toReceiver(kindNotify, ^uint32(0))
	},
	"RNDV":      func(g *rig) bool { return g.rndv(0) },
	"next RNDV": func(g *rig) bool { return g.rndv(1) },
	"late RNDV": func(g *rig) bool { return g.state() != "gone" && g.rndv(^uint32(0)) },
	"all FRAG":  func(g *rig) bool { return g.all() },
	"receive posted": func(g *rig) bool {
		if g.r.state != 0 {
			return false
		}
		g.p.Recv(&g.r, 0, &g.out)
		g.flush()
		return true
	},
}

// TestDance drives a Peer through every state and input. Those that Dance does not have
// change nothing.
func TestDance(t *testing.T) {
	type cell struct{ side, state, input string }
	rows := map[cell]Transition{}
	for _, d := range Dance {
		at := cell{d.Side, d.State, d.Input}
		if rows[at].Next != "" {
			t.Errorf("two rows for %v", at)
		}
		rows[at] = d
	}
	pairs, used := 0, 0
	try := func(side string, states []string, inputs map[string]func(*rig) bool, enter func(*testing.T, string) *rig) {
		for _, state := range states {
			for input, do := range inputs {
				g := enter(t, state)
				if g.state() != state {
					t.Fatalf("%s is %s instead of %s", side, g.state(), state)
				}
				g.kinds = nil
				if !do(g) {
					continue
				}
				pairs++
				want, ok := rows[cell{side, state, input}]
				if ok {
					used++
				} else {
					want.Next = state
				}
				if out := strings.Join(g.kinds, " "); out != want.Output || g.state() != want.Next {
					t.Errorf("{%s, %q, %q, %q, %q},", side, state, input, out, g.state())
				}
			}
		}
	}
	try(Sender, []string{"offered", "streaming", "finishing", "draining", "notifying", "waiting", "answered", "ending", "gone"}, senderInputs, sends)
	try(Receiver, []string{"unmatched", "awaited", "taking", "draining", "asking", "resetting", "overtaken", "ready", "gone"}, receiverInputs, receives)
	if used != len(Dance) {
		t.Errorf("%d rows of %d were tried", used, len(Dance))
	}
	t.Logf("%d states and inputs, of which %d do something", pairs, used)
}

// TestShareOfPaths expects that a message that is not much more than a fragment is cut so that
// all paths carry of it at once.
func TestShareOfPaths(t *testing.T) {
	const size = 80 << 10
	g := newRig(t, Config{GetFrom: 1})
	g.s = SendRequest{Data: make([]byte, size)}
	g.p.Send(&g.s, 0, &g.out)
	g.flush()
	read := head{kind: kindRead}
	read.words[fieldSending], read.words[fieldReceiving], read.words[fieldSize], read.words[fieldKey] = g.s.id, g.other, size, g.s.key
	if err := g.p.Arrived(0, Message, read.append(nil), 0, &g.out); err != nil {
		t.Fatal(err)
	}
	var carried [2]int
	for _, f := range g.out.Frames {
		carried[f.Path] += len(f.Body)
	}
	if carried != [2]int{size / 2, size / 2} {
		t.Errorf("%d bytes are carried as %v", size, carried)
	}
}
