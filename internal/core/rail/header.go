package rail

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrMalformed is wrapped by the errors of Peer.Arrived: the other side has sent what it
// must not send, and the path on which it came is to be ended.
var ErrMalformed = errors.New("rail: malformed fragment")

// kind is the kind of a fragment, its first byte.
type kind uint8

const (
	kindMatch      kind = 1 + iota // a whole message
	kindRndv                       // a message that waits for an ACK or a PUT
	kindRget                       // a message that waits for a READ
	kindAck                        // the receiver is ready for FRAGs
	kindFrag                       // data of a RNDV
	kindPut                        // the receiver's memory is ready to be written
	kindWrite                      // data of a PUT
	kindRead                       // the receiver asks for the data of a RGET
	kindData                       // them
	kindFin                        // the sender has written all
	kindRecvFin                    // a FIN of the receiver's: it has all
	kindNotify                     // the sender restarts
	kindRecvErr                    // the receiver asks the sender to restart
	kindRestartAck                 // the receiver is ready for the restart
	kindNack                       // the receiver needs nothing more
	kindStore                      // a one-sided put
	kindLoad                       // a one-sided get
	kindRefused                    // an answer to a receiver: there will be no data
	kindBringDown                  // the other side has lost this path
	kindKick                       // what lies on this path is to be taken in
	kindCredit                     // what has been matched since the session began
	kinds
)

// field is a field of a head.
type field uint8

const (
	fieldSequence  field = iota
	fieldContext         // of the message
	fieldRestart         // the number of the restart; of a path: its incarnation
	fieldTag             // of the message
	fieldSize            // of the message, or how much of it the receiver takes; credit: bytes
	fieldSending         // the sender's request
	fieldReceiving       // the receiver's request
	fieldRegion          // the number of the region
	fieldKey             // of the region, or of the request whose memory is read or written
	fieldOffset          // of the body in the message, or of the message in the region
	fieldHeads           // credit: envelopes
)

// width is the size of a field in bytes.
func (f field) width() int {
	if f == fieldSequence || f == fieldRestart {
		return 4
	}
	return 8
}

// layout is what a fragment of a kind consists of: the kind, its path, class and reason, one
// byte each, the fields, and perhaps a body.
type layout struct {
	name    string
	class   Class
	fields  []field
	hasBody bool
	size    int // of the head
}

var layouts = [kinds]layout{
	kindMatch:      {name: "MATCH", fields: []field{fieldSequence, fieldContext, fieldRestart, fieldTag}, hasBody: true},
	kindRndv:       {name: "RNDV", fields: []field{fieldSequence, fieldContext, fieldRestart, fieldTag, fieldSize, fieldSending, fieldReceiving}},
	kindRget:       {name: "RGET", fields: []field{fieldSequence, fieldContext, fieldRestart, fieldTag, fieldSize, fieldSending, fieldReceiving, fieldKey}},
	kindAck:        {name: "ACK", fields: []field{fieldRestart, fieldSize, fieldSending, fieldReceiving}},
	kindFrag:       {name: "FRAG", class: Fragment, fields: []field{fieldRestart, fieldReceiving, fieldOffset}, hasBody: true},
	kindPut:        {name: "PUT", fields: []field{fieldRestart, fieldSize, fieldSending, fieldReceiving, fieldKey}},
	kindWrite:      {name: "WRITE", class: Fragment, fields: []field{fieldRestart, fieldReceiving, fieldKey, fieldOffset}, hasBody: true},
	kindRead:       {name: "READ", fields: []field{fieldRestart, fieldSize, fieldSending, fieldReceiving, fieldKey}},
	kindData:       {name: "DATA", class: Fragment, fields: []field{fieldRestart, fieldReceiving, fieldOffset}, hasBody: true},
	kindFin:        {name: "FIN", fields: []field{fieldSequence, fieldContext, fieldRestart, fieldTag, fieldSending, fieldReceiving}},
	kindRecvFin:    {name: "RECVFIN", fields: []field{fieldSequence, fieldContext, fieldRestart, fieldTag, fieldSending, fieldReceiving}},
	kindNotify:     {name: "RNDVRESTARTNOTIFY", fields: []field{fieldSequence, fieldContext, fieldRestart, fieldTag, fieldSending, fieldReceiving}},
	kindRecvErr:    {name: "RECVERRNOTIFY", fields: []field{fieldRestart, fieldSending, fieldReceiving}},
	kindRestartAck: {name: "RNDVRESTARTACK", fields: []field{fieldRestart, fieldSending, fieldReceiving}},
	kindNack:       {name: "RNDVRESTARTNACK", fields: []field{fieldRestart, fieldSending, fieldReceiving}},
	kindStore:      {name: "STORE", fields: []field{fieldSequence, fieldRestart, fieldSize, fieldSending, fieldReceiving, fieldRegion, fieldKey, fieldOffset}},
	kindLoad:       {name: "LOAD", fields: []field{fieldSequence, fieldSize, fieldReceiving, fieldRegion, fieldKey, fieldOffset}},
	kindRefused:    {name: "REFUSED", fields: []field{fieldRestart, fieldReceiving}},
	kindBringDown:  {name: "BRINGDOWN", fields: []field{fieldRestart}},
	kindKick:       {name: "KICK"},
	kindCredit:     {name: "CREDIT", fields: []field{fieldSize, fieldHeads}},
}

func init() {
	for k := range layouts {
		l := &layouts[k]
		l.size = 4
		for _, f := range l.fields {
			l.size += f.width()
		}
	}
}

// String returns the name of the kind.
func (k kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return layouts[k].name
}

// reason says why there is nothing to be done.
type reason uint8

const (
	complete  reason = iota // the receiver has it
	forbidden               // the region is none, or not so
	withdrawn               // the sender has cancelled
	reasons
)

// err returns the error of a request that ends so.
func (r reason) err() error { return [reasons]error{nil, ErrRegion, ErrWithdrawn}[r] }

// head is a fragment without its body.
type head struct {
	kind   kind
	path   uint8
	class  Class
	reason reason
	words  [fieldHeads + 1]uint64
}

func (h *head) sequence() uint32 { return uint32(h.words[fieldSequence]) }
func (h *head) context() uint64  { return h.words[fieldContext] }
func (h *head) restart() uint32  { return uint32(h.words[fieldRestart]) }

// append appends the bytes of h.
func (h *head) append(b []byte) []byte {
	b = append(b, byte(h.kind), h.path, byte(h.class), byte(h.reason))
	for _, f := range layouts[h.kind].fields {
		if f.width() == 4 {
			b = binary.BigEndian.AppendUint32(b, uint32(h.words[f]))
		} else {
			b = binary.BigEndian.AppendUint64(b, h.words[f])
		}
	}
	return b
}

// parse reads a fragment into h and returns its body. Each fragment has one form in bytes.
func (h *head) parse(b []byte) (body []byte, err error) {
	if len(b) < 4 || b[0] == 0 || b[0] >= byte(kinds) {
		return nil, fmt.Errorf("%w: no kind", ErrMalformed)
	}
	k := kind(b[0])
	l := &layouts[k]
	if len(b) < l.size || len(b) > l.size && !l.hasBody {
		return nil, fmt.Errorf("%w: %s of %d bytes", ErrMalformed, k, len(b))
	}
	h.kind, h.path, h.class, h.reason = k, b[1], Class(b[2]), reason(b[3])
	aboutPath := k == kindBringDown || k == kindKick
	aboutReason := k == kindNack || k == kindRefused
	switch {
	case h.path >= MaxRails || h.class >= classes || h.reason >= reasons,
		!aboutPath && (h.path != 0 || h.class != 0), !aboutReason && h.reason != 0:
		return nil, fmt.Errorf("%w: %s of path %d, class %d, reason %d", ErrMalformed, k, h.path, h.class, h.reason)
	}
	clear(h.words[:])
	at := 4
	for _, f := range l.fields {
		if f.width() == 4 {
			h.words[f] = uint64(binary.BigEndian.Uint32(b[at:]))
		} else {
			h.words[f] = binary.BigEndian.Uint64(b[at:])
		}
		at += f.width()
	}
	if h.words[fieldSize] > math.MaxInt64 {
		return nil, fmt.Errorf("%w: %s of %d bytes of memory", ErrMalformed, k, h.words[fieldSize])
	}
	return b[at:], nil
}
