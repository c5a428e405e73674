package rpc

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// A reader reads fields that may hold what they must not; the first fault
// counts. What it names are the fields of the messages.
type reader struct{ err error }

func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s: %s", ErrMalformed, field, fmt.Sprintf(format, args...))
	}
}

// addr reads "IP:port".
func (r *reader) addr(field, text string) netip.AddrPort {
	a, err := netip.ParseAddrPort(text)
	if err != nil || a.Port() == 0 {
		r.fail(field, "%q is not an IP address and a port", text)
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// optionalAddr reads "IP:port" or nothing.
func (r *reader) optionalAddr(field, text string) netip.AddrPort {
	if text == "" {
		return netip.AddrPort{}
	}
	return r.addr(field, text)
}

// optionalIP reads "IP" or nothing.
func (r *reader) optionalIP(field, text string) netip.Addr {
	if text == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		r.fail(field, "%q is not an IP address", text)
	}
	return a.Unmap()
}

// ipText is the inverse of optionalIP.
func ipText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func (r *reader) uint16(field string, v uint32) uint16 {
	if v > math.MaxUint16 {
		r.fail(field, "%d, largest is %d", v, math.MaxUint16)
	}
	return uint16(v)
}

// int reads a number that must fit 32 bits with a sign.
func (r *reader) int(field string, v uint32) int {
	if v > math.MaxInt32 {
		r.fail(field, "%d, largest is %d", v, math.MaxInt32)
	}
	return int(v)
}

// text reads text of at most so many bytes.
func (r *reader) text(field, s string, most int) string {
	if len(s) > most {
		r.fail(field, "%d bytes, most are %d", len(s), most)
	}
	return s
}

// amount reads a number that is finite and not negative.
func (r *reader) amount(field string, v float64) float64 {
	if !(v >= 0 && v <= math.MaxFloat64) {
		r.fail(field, "%v", v)
		return 0
	}
	return v
}

func (r *reader) duration(field string, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil || d.AsDuration() < 0 {
		r.fail(field, "not a duration, or negative")
		return 0
	}
	return d.AsDuration()
}

func (r *reader) functions(field string, list []pb.Function) topology.Functions {
	var set topology.Functions
	for _, f := range list {
		if f < 0 || f > math.MaxUint8 || !reduce.Function(f).Valid() {
			r.fail(field, "function %d is not known to this version", f)
			return 0
		}
		set |= topology.FunctionsOf(reduce.Function(f))
	}
	return set
}

func (r *reader) types(field string, list []pb.ElementType) topology.Types {
	var set topology.Types
	for _, t := range list {
		if t < 0 || t > math.MaxUint8 || !reduce.Type(t).Valid() {
			r.fail(field, "element type %d is not known to this version", t)
			return 0
		}
		set |= topology.TypesOf(reduce.Type(t))
	}
	return set
}

// capability reads what a switch can do. Functions and types that this version
// does not know are left out: no tree asks for them.
func (r *reader) capability(m *pb.Capability) topology.Capability {
	c := topology.Capability{
		Slots:    r.int("capability.slots", m.GetSlots()),
		Children: r.int("capability.children", m.GetChildren()),
		Chunk:    r.int("capability.chunk_bytes", m.GetChunkBytes()),
		Window:   r.int("capability.window", m.GetWindow()),
		Speed:    r.speed("capability.speed", m.GetSpeed()),
		Plain:    !m.GetProtects(),
	}
	c.Functions = knownFunctions(m.GetFunctions())
	for _, t := range m.GetTypes() {
		if t > 0 && t <= math.MaxUint8 && reduce.Type(t).Valid() {
			c.Types |= topology.TypesOf(reduce.Type(t))
		}
	}
	return c
}

// knownFunctions returns those that this version knows.
func knownFunctions(list []pb.Function) (set topology.Functions) {
	for _, f := range list {
		if f > 0 && f <= math.MaxUint8 && reduce.Function(f).Valid() {
			set |= topology.FunctionsOf(reduce.Function(f))
		}
	}
	return set
}

func capability(c topology.Capability) *pb.Capability {
	return &pb.Capability{
		Functions: functions(c.Functions), Types: types(c.Types),
		Slots: uint32(c.Slots), Children: uint32(c.Children), ChunkBytes: uint32(c.Chunk), Window: uint32(c.Window),
		Speed: speed(c.Speed), Protects: !c.Plain,
	}
}

func (r *reader) protection(p pb.Protection) wire.Protection {
	if p < 0 || p > math.MaxUint8 || !wire.Protection(p).Valid() {
		r.fail("protection", "%d is not known: this side is of an earlier version", p)
		return wire.Plain
	}
	return wire.Protection(p)
}

// key returns nothing for none.
func key(k wire.Secret) []byte {
	if k == (wire.Secret{}) {
		return nil
	}
	return k[:]
}

// key reads the key of an edge, which there is where packets are protected.
func (r *reader) key(field string, b []byte, p wire.Protection) (k wire.Secret) {
	if n := copy(k[:], b); n != len(b) || n != 0 && n != len(k) || (n == 0) != (p == wire.Plain) {
		r.fail(field, "%d bytes for packets that are %v", len(b), p)
	}
	return k
}

// speed leaves out what is not known.
func speed(s topology.Speed) *pb.Speed {
	if !s.Known() {
		return nil
	}
	rate := func(n int64) *uint64 {
		if n == 0 {
			return nil
		}
		u := uint64(max(n, 0))
		return &u
	}
	return &pb.Speed{Bytes: rate(s.Bytes), Packets: rate(s.Packets)}
}

func (r *reader) speed(field string, m *pb.Speed) topology.Speed {
	if m == nil {
		return topology.Speed{}
	}
	rate := func(n *uint64) int64 {
		switch {
		case n == nil:
			return 0
		case *n == 0:
			return topology.NoSpeed
		}
		return int64(min(*n, math.MaxInt64))
	}
	s := topology.Speed{Bytes: rate(m.Bytes), Packets: rate(m.Packets)}
	if err := s.Validate(); err != nil {
		r.fail(field, "%v", err)
	}
	return s
}

// reducer leaves out one of which nothing is known.
func reducer(x topology.Reducer) *pb.Reducer {
	if x.Pipeline == topology.UnknownPipeline {
		return nil
	}
	m := &pb.Reducer{Pipeline: pb.Pipeline(x.Pipeline)}
	if x.Pipeline == topology.Software {
		return m
	}
	for t, f := range x.Own {
		if f != 0 {
			m.Own = append(m.Own, &pb.Pairs{Type: pb.ElementType(t), Functions: functions(f)})
		}
	}
	return m
}

// reducer reads what reduces in a switch. A pipeline that this version does not
// know is an unknown one; functions and types that it does not know no operation
// has.
func (r *reader) reducer(m *pb.Reducer) topology.Reducer {
	var x topology.Reducer
	switch p := topology.Pipeline(m.GetPipeline()); p {
	case topology.Software:
		return topology.SoftwareReducer()
	case topology.Kernel, topology.P4:
		x.Pipeline = p
	default:
		return x
	}
	for _, own := range m.GetOwn() {
		if t := own.GetType(); t > 0 && int(t) < len(x.Own) {
			x.Own[t] |= knownFunctions(own.GetFunctions())
		}
	}
	return x
}

func functions(set topology.Functions) []pb.Function {
	return each(set.List(), func(f reduce.Function) pb.Function { return pb.Function(f) })
}

func types(set topology.Types) []pb.ElementType {
	return each(set.List(), func(t reduce.Type) pb.ElementType { return pb.ElementType(t) })
}

// each returns what f makes of each of a list; nil of none.
func each[A, B any](all []A, f func(A) B) []B {
	var list []B
	for _, x := range all {
		list = append(list, f(x))
	}
	return list
}

// addrText is the inverse of optionalAddr.
func addrText(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// duration leaves zero out.
func duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
