package world

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// callStart is a command to a Host: begin this member's part of an operation by messages.
type callStart struct {
	number int // among the group's calls
	run    *schedule.Run
	by     schedule.Algorithm
}

// callResult reports that a part has ended. Its buffers are the caller's again.
type callResult struct {
	number int
	err    error
}

// errMemberDead is the error of operations that a death has ended.
type errMemberDead struct{ fail wire.Fail }

func (e *errMemberDead) Error() string {
	return fmt.Sprintf("rank %d is dead: %s", e.fail.Rank, e.fail.Reason)
}

var errDisagree = errors.New("another operation's message")

// hostOp carries out a schedule, as hostlib does.
type hostOp struct {
	callStart
	waits       []*hostTransfer // transfers of the round, that are under way
	err         error           // why it is abandoned: it ends when the communicator has, for a reason
	isBeginning bool            // not all transfers of the round are
}

// hostTransfer is a message under way.
type hostTransfer struct {
	schedule.Transfer
	op   *hostOp
	send *rail.SendRequest
	recv *rail.RecvRequest
}

// begin begins an operation.
func (m *messages) begin(now core.Time, s callStart) {
	m.now = now
	plan, err := schedule.Make(&s.run.Call, s.by)
	if err != nil {
		panic(err)
	}
	s.run.Temp = make([]byte, plan.Temp)
	s.run.Follow(plan)
	o := &hostOp{callStart: s}
	m.running = append(m.running, o)
	m.advance(o)
}

// advance goes on with an operation none of whose transfers is under way.
func (m *messages) advance(o *hostOp) {
	for len(o.waits) == 0 && o.err == nil {
		r, ok := o.run.Next()
		if !ok {
			m.conclude(o, nil)
			return
		}
		var all []*hostTransfer
		for i, transfers := range [...][]schedule.Transfer{r.Recvs, r.Sends} {
			for _, t := range transfers {
				all = append(all, m.transfer(o, t, i == 0))
			}
		}
		o.isBeginning = true
		for _, x := range all {
			if o.err == nil {
				m.request(x)
			}
		}
		o.isBeginning = false
	}
}

func (m *messages) transfer(o *hostOp, t schedule.Transfer, isRecv bool) *hostTransfer {
	x := &hostTransfer{Transfer: t, op: o}
	if isRecv {
		x.recv = &rail.RecvRequest{Context: context, Tag: o.run.Tag & schedule.TagSerial, Ignore: ^uint64(schedule.TagSerial), Data: o.run.At(t.Part), First: true, User: x}
	} else {
		x.send = &rail.SendRequest{Context: context, Tag: o.run.Tag, Data: o.run.At(t.Part), Buffered: true, First: true, User: x}
	}
	return x
}

// request begins a transfer.
func (m *messages) request(x *hostTransfer) {
	if m.isOver {
		x.op.err = rail.ErrCancelled
		m.abandon(x.op, x)
		return
	}
	x.op.waits = append(x.op.waits, x)
	p := m.peers[x.Peer]
	if p.under++; slices.ContainsFunc(p.conns, func(c railConn) bool { return !c.isUp && c.life > 0 }) {
		p.redial = p.redial.Earlier(m.now.Add(m.cfg.health.Within))
	}
	if x.recv != nil {
		p.core.Recv(x.recv, m.now, &m.out)
	} else {
		p.core.Send(x.send, m.now, &m.out)
	}
	m.settle(p)
}

// finished takes that a request is done.
func (m *messages) finished(p *railPeer, d *rail.Done) {
	p.under--
	var x *hostTransfer
	if d.Recv != nil {
		x = d.Recv.User.(*hostTransfer)
	} else {
		x = d.Send.User.(*hostTransfer)
	}
	o, err := x.op, d.Err
	o.waits = slices.DeleteFunc(o.waits, func(y *hostTransfer) bool { return x == y })
	if err == nil && d.Recv != nil && !o.run.Awaits(&x.Transfer, d.Tag, d.N) || errors.Is(err, rail.ErrTruncated) {
		err = errDisagree
	}
	if err != nil && o.err == nil {
		o.err = err
		m.abandon(o, x)
	}
	if len(o.waits) == 0 && o.err == nil && !o.isBeginning {
		m.advance(o)
	}
}

// abandon ends an operation with an error of a transfer. The communicator ends by that, or has.
func (m *messages) abandon(o *hostOp, x *hostTransfer) {
	switch {
	case errors.Is(o.err, errDisagree):
		panic(fmt.Sprintf("call %d: rank %d has a message of another operation from rank %d", o.number, m.rank, x.Peer))
	case errors.Is(o.err, rail.ErrCancelled), errors.Is(o.err, rail.ErrWithdrawn): // an end of the communicator, here or there
	default:
		m.suspects(x.Peer, o.err.Error())
	}
	for _, y := range slices.Clone(o.waits) {
		if !slices.Contains(o.waits, y) {
			continue
		}
		p := m.peers[y.Peer]
		if y.recv != nil {
			p.core.CancelRecv(y.recv, m.now, &m.out)
		} else {
			p.core.CancelSend(y.send, m.now, &m.out)
		}
		m.settle(p)
	}
}

// conclude reports the end of an operation.
func (m *messages) conclude(o *hostOp, err error) {
	o.run.Stop()
	m.running = slices.DeleteFunc(m.running, func(p *hostOp) bool { return p == o })
	m.results = append(m.results, callResult{o.number, err})
}

// concludeAll ends what is abandoned, when the communicator has ended for a reason.
func (m *messages) concludeAll(f *wire.Fail) {
	for _, o := range slices.Clone(m.running) {
		if o.err != nil && len(o.waits) == 0 {
			m.conclude(o, &errMemberDead{*f})
		}
	}
}

// hold keeps back the last barrier until all operations by messages are done.
func (m *messages) hold(in *endpoint.Input) (isHeld bool) {
	if in.Kind != endpoint.Start || !in.Operation.Last || len(m.running) == 0 {
		return false
	}
	m.last = in
	return true
}

// held returns the last barrier, when its time has come.
func (m *messages) held(in []endpoint.Input) []endpoint.Input {
	if m.last != nil && len(m.running) == 0 {
		in, m.last = append(in, *m.last), nil
	}
	return in
}
