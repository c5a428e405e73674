package lldpdu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/mdlayher/lldp"
)

// Delay is a TLV of Tributary's own by which two neighbours measure the delay of the link
// between them: a request, and a response that says how long the responder held it. That is
// the peer delay mechanism of PTP (IEEE 1588), reduced to what needs no synchronized
// clocks. It comes behind a whole announcement, so that others on the link hear nothing
// unusual.
type Delay struct {
	Kind   DelayKind
	Target [6]byte       // MAC address of the port that it is for: others on the link ignore it
	Nonce  uint64        // of the request
	Hold   time.Duration // of a response: from the request's arrival to the response's departure
}

// DelayKind is that of a Delay.
type DelayKind uint8

// The kinds of a Delay; 0 is none.
const (
	DelayRequest DelayKind = 1 + iota
	DelayResponse
)

const delaySize = 1 + 6 + 8 + 8 // bytes of its value

// AppendDelay appends an LLDPDU with a Delay at its end. The error wraps ErrTooLong.
func AppendDelay(b, pdu []byte, d Delay) ([]byte, error) {
	const head = len(organization) + 1
	if n := len(pdu) + 2 + head + delaySize; n > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLong, n, MaxSize)
	}
	b = append(b, pdu[:len(pdu)-2]...) // without its end
	b = binary.BigEndian.AppendUint16(b, uint16(lldp.TLVTypeOrganizationSpecific)<<9|uint16(head+delaySize))
	b = append(append(append(b, organization...), ownDelay, byte(d.Kind)), d.Target[:]...)
	b = binary.BigEndian.AppendUint64(b, d.Nonce)
	b = binary.BigEndian.AppendUint64(b, uint64(d.Hold))
	return append(b, 0, 0), nil
}

// DecodeDelay returns the Delay of an LLDPDU that Decode reads; ok: it has one.
func DecodeDelay(pdu []byte) (d Delay, ok bool) {
	for len(pdu) >= 2 {
		head := binary.BigEndian.Uint16(pdu)
		end := min(2+int(head&lldp.TLVLengthMax), len(pdu))
		v, own := bytes.CutPrefix(pdu[2:end], []byte(organization+string(rune(ownDelay))))
		switch kind := lldp.TLVType(head >> 9); {
		case kind == lldp.TLVTypeEnd:
			return Delay{}, false
		case own && kind == lldp.TLVTypeOrganizationSpecific:
			return readDelay(v)
		}
		pdu = pdu[end:]
	}
	return Delay{}, false
}

// readDelay reads the value of a Delay.
func readDelay(v []byte) (d Delay, ok bool) {
	if len(v) != delaySize {
		return Delay{}, false
	}
	d = Delay{Kind: DelayKind(v[0]), Target: [6]byte(v[1:]), Nonce: binary.BigEndian.Uint64(v[7:]), Hold: time.Duration(binary.BigEndian.Uint64(v[15:]))}
	if d.Kind != DelayRequest && d.Kind != DelayResponse || d.Kind == DelayRequest && d.Hold != 0 || d.Hold < 0 {
		return Delay{}, false
	}
	return d, true
}
