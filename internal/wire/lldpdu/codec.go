package lldpdu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/lldp"
)

// ErrMalformed is wrapped by the errors of an LLDPDU that is to be discarded as a whole.
var ErrMalformed = errors.New("lldpdu: malformed LLDPDU")

// ErrTooLong is wrapped by the errors of an Announcement that no LLDPDU has room for.
var ErrTooLong = errors.New("lldpdu: announcement without room in an LLDPDU")

// organization stands in front of Tributary's own TLVs: an identifier from the space that
// anybody may use (IEEE 802, SLAP: administratively assigned), and then the subtype.
const organization = "\x02\x54\x42"

// Subtypes of Tributary's own TLVs.
const (
	ownNode  = 1 // role, name
	ownAgent = 2 // port of the gRPC listener
	ownPort  = 3 // number of the port
	ownDelay = 4 // Delay
)

// Append appends a as an LLDPDU, which ends without padding. The errors wrap ErrTooLong or,
// of an identifier that is empty, ErrMalformed.
func (a *Announcement) Append(b []byte) ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	f := lldp.Frame{
		ChassisID: &lldp.ChassisID{Subtype: lldp.ChassisIDSubtype(a.Chassis.Subtype), ID: []byte(a.Chassis.Value)},
		PortID:    &lldp.PortID{Subtype: lldp.PortIDSubtype(a.Port.Subtype), ID: []byte(a.Port.Value)},
		TTL:       time.Duration(a.TTL) * time.Second,
	}
	add := func(kind lldp.TLVType, value []byte) {
		f.Optional = append(f.Optional, &lldp.TLV{Type: kind, Length: uint16(len(value)), Value: value})
	}
	for i, s := range [...]string{a.PortDescription, a.SystemName, a.SystemDescription} {
		if s != "" {
			add(lldp.TLVTypePortDescription+lldp.TLVType(i), []byte(s))
		}
	}
	if a.Capabilities|a.Enabled != 0 {
		v := binary.BigEndian.AppendUint16(nil, uint16(a.Capabilities))
		add(lldp.TLVTypeSystemCapabilities, binary.BigEndian.AppendUint16(v, uint16(a.Enabled)))
	}
	for _, m := range a.Management {
		v := appendAddress([]byte{0}, m)
		v[0] = byte(len(v) - 1)
		// The interface's number is of the subtype "unknown", and there is no object identifier.
		add(lldp.TLVTypeManagementAddress, append(v, 1, 0, 0, 0, 0, 0))
	}
	a.Tributary.encode(func(subtype byte, value []byte) {
		add(lldp.TLVTypeOrganizationSpecific, append([]byte(organization+string(subtype)), value...))
	})
	pdu, err := f.MarshalBinary()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lldpdu: encoding: %w", err)
	case len(pdu) > MaxSize:
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLong, len(pdu), MaxSize)
	}
	return append(b, pdu...), nil
}

func (a *Announcement) check() error {
	for _, f := range [...]struct {
		name, value string
		least       int
	}{
		{"chassis identifier", a.Chassis.Value, 1}, {"port identifier", a.Port.Value, 1}, {"port description", a.PortDescription, 0},
		{"system name", a.SystemName, 0}, {"system description", a.SystemDescription, 0}, {"Tributary's name", a.Tributary.Name, 0},
	} {
		switch {
		case len(f.value) < f.least:
			return fmt.Errorf("%w: the %s is empty", ErrMalformed, f.name)
		case len(f.value) > MaxText:
			return fmt.Errorf("%w: the %s has %d bytes, want at most %d", ErrTooLong, f.name, len(f.value), MaxText)
		}
	}
	if n := len(a.Management); n > MaxManagement {
		return fmt.Errorf("%w: %d management addresses, want at most %d", ErrTooLong, n, MaxManagement)
	}
	return nil
}

func (t *Tributary) encode(add func(subtype byte, value []byte)) {
	if t.Role != None {
		add(ownNode, append([]byte{byte(t.Role)}, t.Name...))
	}
	if t.AgentPort != 0 {
		add(ownAgent, binary.BigEndian.AppendUint16(nil, t.AgentPort))
	}
	if t.PortNumber != 0 {
		add(ownPort, binary.BigEndian.AppendUint32(nil, t.PortNumber))
	}
}

// Decode reads an LLDPDU, and returns how many of its TLVs it discarded because they are
// malformed or repeated; unknown ones do not count. The errors wrap ErrMalformed. Nothing
// that is returned refers to b.
func Decode(b []byte) (a Announcement, discarded int, err error) {
	b, err = ended(b)
	if err != nil {
		return Announcement{}, 0, err
	}
	var f lldp.Frame
	if err := f.UnmarshalBinary(b); err != nil {
		return Announcement{}, 0, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	a.Chassis = ChassisID{ChassisSubtype(f.ChassisID.Subtype), string(f.ChassisID.ID)}
	a.Port = PortID{PortSubtype(f.PortID.Subtype), string(f.PortID.ID)}
	a.TTL = uint16(f.TTL / time.Second)
	for _, id := range [...]string{a.Chassis.Value, a.Port.Value} {
		if id == "" || len(id) > MaxText {
			return Announcement{}, 0, fmt.Errorf("%w: an identifier of %d bytes, want 1 to %d", ErrMalformed, len(id), MaxText)
		}
	}
	r := reader{a: &a}
	for _, t := range f.Optional {
		if !r.take(t) {
			discarded++
		}
	}
	return a, discarded, nil
}

// ended returns b up to its end of LLDPDU, which it adds if there is none. It refuses what
// is too long, a TLV that is cut off, and mandatory ones that are repeated.
func ended(b []byte) ([]byte, error) {
	var mandatory [lldp.TLVTypeTTL + 1]int
	for at := 0; ; {
		switch left := len(b) - at; {
		case at+2 > MaxSize:
			return nil, fmt.Errorf("%w: more than %d bytes", ErrMalformed, MaxSize)
		case left == 0:
			return append(bytes.Clone(b), 0, 0), nil
		case left == 1:
			return nil, fmt.Errorf("%w: one byte is left behind a TLV", ErrMalformed)
		}
		head := binary.BigEndian.Uint16(b[at:])
		kind, n := lldp.TLVType(head>>9), int(head&lldp.TLVLengthMax)
		if kind == lldp.TLVTypeEnd && n == 0 {
			return b[:at+2], nil
		}
		if int(kind) < len(mandatory) {
			if mandatory[kind]++; mandatory[kind] > 1 || kind == lldp.TLVTypeEnd {
				return nil, fmt.Errorf("%w: a TLV of type %d is repeated, or has %d bytes", ErrMalformed, kind, n)
			}
		}
		if at += 2 + n; at > len(b) {
			return nil, fmt.Errorf("%w: a TLV of type %d has %d bytes, and %d are left", ErrMalformed, kind, n, len(b)-at+n)
		}
	}
}

// reader reads the optional TLVs of an LLDPDU.
type reader struct {
	a      *Announcement
	had    [lldp.TLVTypeSystemCapabilities + 1]bool // of those that come once at most
	hadOwn [ownDelay + 1]bool
}

// take reads a TLV, and reports whether it was good.
func (r *reader) take(t *lldp.TLV) bool {
	v := t.Value
	switch {
	case t.Type == lldp.TLVTypeManagementAddress:
		return r.management(v)
	case t.Type == lldp.TLVTypeOrganizationSpecific:
		if len(v) < len(organization)+1 {
			return false
		}
		return !bytes.HasPrefix(v, []byte(organization)) || r.own(v[len(organization)], v[len(organization)+1:])
	case int(t.Type) >= len(r.had):
		return true // unknown
	case r.had[t.Type]:
		return false
	}
	r.had[t.Type] = true
	if t.Type == lldp.TLVTypeSystemCapabilities {
		if len(v) != 4 {
			return false
		}
		r.a.Capabilities = Capabilities(binary.BigEndian.Uint16(v))
		r.a.Enabled = Capabilities(binary.BigEndian.Uint16(v[2:]))
		return true
	}
	fields := [...]*string{&r.a.PortDescription, &r.a.SystemName, &r.a.SystemDescription}
	*fields[t.Type-lldp.TLVTypePortDescription] = clean(v)
	return len(v) <= MaxText
}

// clean returns a text without the zeros that some senders end it with, and with a question
// mark for bytes that are not UTF-8. One that is too long is empty.
func clean(v []byte) string {
	if len(v) > MaxText {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimRight(string(v), "\x00"), "?")
}

// management reads a management address. Those of other families than IP are left out.
func (r *reader) management(v []byte) bool {
	// The address has 1 to 31 bytes behind its family. Behind it are the interface's number
	// with its subtype, 5 bytes, and an object identifier behind its length.
	if len(v) < 1 || v[0] < 2 || v[0] > 32 || len(v) < 1+int(v[0])+6 {
		return false
	}
	if oid := v[1+int(v[0])+5:]; int(oid[0]) != len(oid)-1 || oid[0] > 128 {
		return false
	}
	m, ok := address(v[1 : 1+v[0]])
	switch {
	case !ok:
		return v[1] != familyIPv4 && v[1] != familyIPv6
	case m.IsUnspecified(), m.IsMulticast():
		return false
	case slices.Contains(r.a.Management, m):
		return true
	case len(r.a.Management) == MaxManagement:
		return false
	}
	r.a.Management = append(r.a.Management, m)
	return true
}

// own reads a TLV of Tributary's own.
func (r *reader) own(subtype byte, v []byte) bool {
	if int(subtype) >= len(r.hadOwn) || subtype == 0 {
		return true // of a later version
	}
	if r.hadOwn[subtype] {
		return false
	}
	r.hadOwn[subtype] = true
	t := &r.a.Tributary
	switch {
	case subtype == ownNode && len(v) >= 2 && len(v) <= 1+MaxText && (Role(v[0]) == Switch || Role(v[0]) == Host):
		t.Role, t.Name = Role(v[0]), clean(v[1:])
	case subtype == ownAgent && len(v) == 2:
		t.AgentPort = binary.BigEndian.Uint16(v)
	case subtype == ownPort && len(v) == 4:
		t.PortNumber = binary.BigEndian.Uint32(v)
	case subtype == ownDelay:
		_, ok := readDelay(v) // for DecodeDelay
		return ok
	default:
		return false
	}
	return true
}
