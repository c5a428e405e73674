package rail

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
)

// receiverState is what a RecvRequest waits for.
type receiverState uint8

const (
	posted       receiverState = 1 + iota // a message
	queuingLoad                           // a path, or room at the other side
	unmatched                             // the core's own: a receive
	taking                                // data
	recvDraining                          // in error: the completions of its fragments; data may come
	asking                                // NOTIFY, after RECVERRNOTIFY; data may come
	resetting                             // the completions of its fragments, after NOTIFY
	ready                                 // the envelope of the restart, after RNDVRESTARTACK
	recvGone                              // nothing: it is done
)

var receiverStates = [...]string{"idle", "posted", "queuing", "unmatched", "taking", "draining", "asking", "resetting", "ready", "gone"}

// String returns the name of the state.
func (s receiverState) String() string { return receiverStates[s] }

// receiver is the core's part of a RecvRequest.
type receiver struct {
	links       links[RecvRequest]
	id          uint64
	state       receiverState
	answer      kind // kindAck, kindPut or kindRead
	head        head // the envelope
	restart     uint32
	key         uint64
	limit, got  uint64 // bytes
	outstanding int    // fragments
	buffer      []byte // of the core's: the message, not matched yet
	hasFin      bool
	isThere     bool // the envelope of the restart, while it drains
	isAwaited   bool // it was not matched when NOTIFY came: the envelope of the restart is to come
	isPassive   bool // the core's own
	isKept      bool // from an earlier session
}

// size returns the size of the message.
func (r *receiver) size() uint64 {
	if r.head.kind == kindMatch {
		return uint64(len(r.buffer))
	}
	return r.head.words[fieldSize]
}

// isTaking reports whether data may come.
func (r *receiver) isTaking() bool {
	return r.state == taking || r.state == recvDraining || r.state == asking
}

// begun answers the envelope of a receive that was matched now, if it is not to come again.
func (p *Peer) begun(r *RecvRequest) {
	if r.isAwaited {
		r.state, r.isAwaited = ready, false
		return
	}
	p.grant(r)
}

// grant answers the envelope of a matched receive: data may come.
func (p *Peer) grant(r *RecvRequest) {
	need := min(r.size(), uint64(len(r.Data)))
	if need == 0 {
		p.answerEnd(r, complete)
		p.received(r, r.truncated())
		return
	}
	r.state, r.isThere, r.hasFin = taking, false, false
	r.limit, r.got = need, 0
	r.answer = kindAck
	switch {
	case r.head.kind == kindRget:
		r.answer, r.key = kindRead, r.head.words[fieldKey]
	case r.head.kind == kindRndv && p.cfg.PutFrom > 0 && need >= uint64(p.cfg.PutFrom):
		r.answer, r.key = kindPut, p.keys.Uint64()
	}
	h := p.ownControl(r.answer, r)
	h.words[fieldSize], h.words[fieldKey] = need, r.key
	p.wantData()
}

// wantData has a path be made for the data that come, if there is none: the other side, which
// wants one, too, may not be able to call this one.
func (p *Peer) wantData() {
	if p.net.up[Fragment] == 0 {
		p.out.Wanted |= 1 << Fragment
	}
}

// answerEnd lets the sender of a matched receive know that nothing more is needed.
func (p *Peer) answerEnd(r *RecvRequest, why reason) {
	f := p.reply(kindNack)
	f.head.reason = why
	f.head.words[fieldRestart], f.head.words[fieldSending] = uint64(r.restart), r.head.words[fieldSending]
}

// dataOf is the kind of the data after an answer.
var dataOf = [kinds]kind{kindAck: kindFrag, kindPut: kindWrite, kindRead: kindData}

// taker returns the receive that takes n bytes of FRAG, WRITE or DATA; nil: they are late, or the
// error wraps ErrMalformed.
func (p *Peer) taker(h *head, n uint64) (*RecvRequest, error) {
	r := p.recvs.get(h.words[fieldReceiving])
	if r == nil || !r.isTaking() || r.restart != h.restart() {
		return nil, nil
	}
	at := h.words[fieldOffset]
	if dataOf[r.answer] != h.kind || h.kind == kindWrite && h.words[fieldKey] != r.key || n == 0 || at > r.limit || n > r.limit-at || n > r.limit-r.got {
		return nil, fmt.Errorf("%w: %s of %d bytes at %d, after %d of %d", ErrMalformed, h.kind, n, at, r.got, r.limit)
	}
	return r, nil
}

// arrived takes FRAG, WRITE or DATA of n bytes; with a body nil they lie where Place has said. Late
// ones touch no memory.
func (p *Peer) arrived(h *head, n int, body []byte) error {
	r, err := p.taker(h, uint64(n))
	if err != nil {
		return err
	}
	if r == nil {
		p.counters.Late++
		return nil
	}
	copy(r.Data[h.words[fieldOffset]:], body)
	r.got += uint64(n)
	p.progress(r)
	return nil
}

// Place returns where the body of a fragment of so many bytes is to be read, of which b has come, at
// least BeginSize bytes; nil: nowhere. The memory is the driver's until the next call of the Peer's.
// It asks before each read, and calls Placed only if there was a place for all of them.
func (p *Peer) Place(class Class, b []byte, size int) []byte {
	var h head
	if _, err := h.parse(b); err != nil || class != Fragment || layouts[h.kind].class != Fragment || size < len(b) {
		return nil
	}
	n := uint64(size - layouts[h.kind].size)
	r, err := p.taker(&h, n)
	if r == nil || err != nil {
		return nil
	}
	at := h.words[fieldOffset]
	return r.Data[at : at+n : at+n]
}

// BeginSize are the bytes of a fragment of class Fragment that say where it lies.
const BeginSize = 32

// progress ends a receive that has all.
func (p *Peer) progress(r *RecvRequest) {
	if r.got < r.limit || r.answer == kindPut && !r.hasFin {
		return
	}
	if r.head.kind == kindRget || r.head.kind == kindStore {
		h := &p.reply(kindRecvFin).head
		h.words = r.head.words
		h.words[fieldRestart], h.words[fieldReceiving] = uint64(r.restart), r.id
	}
	p.received(r, r.truncated())
}

// truncated returns the error of a complete message.
func (r *RecvRequest) truncated() error {
	if r.size() > uint64(len(r.Data)) {
		return ErrTruncated
	}
	return nil
}

// received ends a matched receive. Completions of its fragments that are still to come are
// nobody's.
func (p *Peer) received(r *RecvRequest, err error) {
	p.recvs.remove(r.id)
	if r.isPassive {
		if err == nil {
			p.counters.Received[Store].Add(1, r.got)
		}
		p.cfg.Regions.Unhold(r.Handle)
		p.took(heap{heads: 1})
		p.spare.recv(r)
		return
	}
	d := Done{Recv: r, Err: err, Tag: r.head.words[fieldTag]}
	if err == nil || err == ErrTruncated {
		d.Size = r.size()
		d.N = int(min(r.size(), uint64(len(r.Data))))
		p.counters.Received[flowOf(r.head.kind)].Add(1, uint64(d.N))
	}
	p.spare.give(r.buffer)
	r.receiver = receiver{state: recvGone}
	p.out.Done = append(p.out.Done, d)
}

// wasRefused takes REFUSED: no data will come.
func (p *Peer) wasRefused(h *head) {
	if r := p.recvs.get(h.words[fieldReceiving]); r != nil && int32(h.restart()-r.restart) >= 0 {
		p.received(r, h.reason.err())
	} else {
		p.counters.Late++
	}
}

// CancelRecv cancels a receive: it is done with ErrCancelled. The sender of a message that it
// has is done as if it had arrived.
func (p *Peer) CancelRecv(r *RecvRequest, now core.Time, out *Output) {
	p.begin(now, out)
	p.cancelRecv(r)
	p.end()
}

func (p *Peer) cancelRecv(r *RecvRequest) {
	switch r.state {
	case posted, queuingLoad:
		r.links.in.remove(r)
		p.received(r, ErrCancelled)
	case taking, recvDraining, asking, resetting, ready:
		if r.head.kind != kindLoad {
			p.answerEnd(r, complete)
		}
		p.received(r, ErrCancelled)
	}
}
