package broadcastmsg

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// FuzzRequest: whatever is read is written as it was, so that a request has one
// form; and it is at most 4 KiB.
func FuzzRequest(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRequest(b)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Errorf("%v does not wrap ErrMessage", err)
			}
			return
		}
		if len(b) > MaxRequest || r.Size() != len(b) || !bytes.Equal(r.Append(nil), b) {
			t.Errorf("%x is read as %+v, which is written %x", b, r, r.Append(nil))
		}
		for _, g := range goldens() {
			if used := g.request; used != nil {
				if err := used.Decode(b); err != nil || !reflect.DeepEqual(used, r) {
					t.Errorf("in place of %s, %x is read as %+v, %v", g.name, b, used, err)
				}
			}
		}
	})
}

// FuzzReply: the same for replies.
func FuzzReply(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeReply(b)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Errorf("%v does not wrap ErrMessage", err)
			}
			return
		}
		if r.HeadSize()+len(r.Body) != len(b) || !bytes.Equal(r.Append(nil), b) {
			t.Errorf("%x is read as %+v, which is written %x", b, r, r.Append(nil))
		}
		used := Reply{Key: key(), Final: true, Ran: 9, Missing: []Missing{{"h8", 1, Dead, ""}}, Reason: "x", Body: []byte{1}}
		kept := used.Missing
		if err := used.Decode(b); err != nil || !reflect.DeepEqual(&used, r) || kept[0].Node != "h8" {
			t.Errorf("in place of another %x is read as %+v, %v", b, used, err)
		}
	})
}

// FuzzCreation: the same for lists of members.
func FuzzCreation(f *testing.F) {
	f.Add((&Creation{Name: "g", Targets: targets()}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCreation(b)
		if err == nil && (c.Size() != len(b) || !bytes.Equal(c.Append(nil), b)) {
			t.Errorf("%x is read as %+v", b, c)
		}
	})
}

func TestMalformedRequests(t *testing.T) {
	for name, change := range map[string]func(r *Request){
		"no service":              func(r *Request) { r.Service = 0 },
		"no root":                 func(r *Request) { r.Root = "" },
		"unknown flag":            func(r *Request) { r.Flags = 128 },
		"unknown subset":          func(r *Request) { r.Subset = 4 },
		"negative time":           func(r *Request) { r.Patience = -time.Second },
		"negative level":          func(r *Request) { r.Level = -time.Second },
		"later than P":            func(r *Request) { r.Late = r.Patience + 1 },
		"a filter of no length":   func(r *Request) { r.Subset = Filtered },
		"a filter of no form":     func(r *Request) { r.Subset, r.Filter = Filtered, Filter{2, 1} },
		"a filter of nobody":      func(r *Request) { r.Subset, r.Filter = Filtered, Filter{0, 0} },
		"a filter with long runs": func(r *Request) { r.Subset, r.Filter = Filtered, Filter{0, 0x81, 0} },
		"an empty run in between": func(r *Request) { r.Subset, r.Filter = Filtered, Filter{0, 1, 0, 1} },
		"bulk of nothing":         func(r *Request) { r.Flags = HasBulk },
		"creation out-of-band":    func(r *Request) { r.Flags, r.Creation = Creates|OutOfBand, &Creation{Targets: targets()} },
		"last of a subset":        func(r *Request) { r.Flags, r.Subset = Last, Alive },
		"own with a payload":      func(r *Request) { r.Flags = Own | Last | OutOfBand },
		"freed without members":   func(r *Request) { r.Flags, r.Payload = Own|Last, nil },
		"own that does nothing":   func(r *Request) { r.Flags, r.Payload = Own, nil },
		"a proof without a flag":  func(r *Request) { r.Proof = &Proof{Signature: make([]byte, SignatureSize)} },
		"a flag without a proof":  func(r *Request) { r.Flags = Proven },
		"a proof of nothing":      func(r *Request) { r.Flags, r.Proof = Proven, &Proof{} },
		"a short signature":       func(r *Request) { r.Flags, r.Proof = Proven, &Proof{Signature: make([]byte, SignatureSize-1)} },
		"too many tags":           func(r *Request) { r.Flags, r.Proof = Proven, &Proof{Tags: make([]byte, (MostTags+1)*TagSize)} },
		"a floor above itself": func(r *Request) {
			r.Flags, r.Proof = Proven, &Proof{Floor: r.Sequence + 1, Signature: make([]byte, SignatureSize)}
		},
		"4097 bytes":                func(r *Request) { r.Payload = make([]byte, MaxRequest-114+1) },
		"entities twice":            func(r *Request) { r.Flags, r.Creation = Creates, &Creation{Targets: []Target{{"h3", []Tag{{1}, {1}}}}} },
		"a node without entities":   func(r *Request) { r.Flags, r.Creation = Creates, &Creation{Targets: []Target{{"h3", nil}}} },
		"a node without a name":     func(r *Request) { r.Flags, r.Creation = Creates, &Creation{Targets: []Target{{"", []Tag{{1}}}}} },
		"a group without any nodes": func(r *Request) { r.Flags, r.Creation = Creates, &Creation{} },
	} {
		t.Run(name, func(t *testing.T) {
			r := plain()
			change(r)
			if got, err := decodeRequest(r.Append(nil)); !errors.Is(err, ErrMessage) {
				t.Errorf("read as %+v, %v, want ErrMessage", got, err)
			}
		})
	}
	r := plain()
	r.Payload = make([]byte, MaxRequest-114)
	if _, err := decodeRequest(r.Append(nil)); err != nil {
		t.Errorf("4096 bytes: %v", err)
	}
}

func TestMalformedReplies(t *testing.T) {
	for name, r := range map[string]Reply{
		"no root":              {Final: true},
		"local status":         {Key: key(), Final: true, Status: Expired},
		"reason of success":    {Key: key(), Final: true, Reason: "fine"},
		"small part":           {Key: key(), Body: []byte{1}},
		"part that says more":  {Key: key(), Ran: 1, Body: make([]byte, MinPart)},
		"part without offset":  {Key: key(), Final: true, Part: 1},
		"offset without part":  {Key: key(), Final: true, Offset: MinPart},
		"offset of small ones": {Key: key(), Final: true, Part: 2, Offset: MinPart},
		"missing nobody":       {Key: key(), Final: true, Missing: []Missing{{"h8", 0, Dead, ""}}},
		"missing and chatty":   {Key: key(), Final: true, Missing: []Missing{{"h8", 1, Dead, "it was"}}},
		"missing and well":     {Key: key(), Final: true, Missing: []Missing{{"h8", 1, OK, ""}}},
		"missing too many":     {Key: key(), Final: true, Missing: make([]Missing, MaxMissing+1)},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decodeReply(r.Append(nil)); !errors.Is(err, ErrMessage) {
				t.Errorf("read as %+v, %v, want ErrMessage", got, err)
			}
		})
	}
}

// TestDigest: order, service, nodes and entities all count; roots do not.
func TestDigest(t *testing.T) {
	seen := map[Digest]string{}
	for name, d := range map[string]Digest{
		"as it is":        DigestOf(7, targets()),
		"another service": DigestOf(8, targets()),
		"another order":   DigestOf(7, []Target{targets()[1], targets()[0]}),
		"another entity":  DigestOf(7, []Target{{"h3", []Tag{{2}}}, targets()[1]}),
		"fewer entities":  DigestOf(7, []Target{targets()[0], {"h4", []Tag{{1}}}}),
		"another node":    DigestOf(7, []Target{{"h5", []Tag{{1}}}, targets()[1]}),
	} {
		if other, twice := seen[d]; twice {
			t.Errorf("%q and %q have one digest", name, other)
		}
		seen[d] = name
	}
	if one, other := DigestOf(7, targets()), DigestOf(7, targets()); one != other {
		t.Error("the digest depends on more than the members")
	}
}

func TestIndexNamesItsMaker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := Node(rapid.StringN(1, 64, 64).Draw(t, "node"))
		incarnation, count := rapid.Uint64().Draw(t, "incarnation"), rapid.Uint64().Draw(t, "count")
		i := MakeIndex(node, incarnation, count)
		if !i.MadeBy(node, incarnation) || i.MadeBy(node+"x", incarnation) || i.MadeBy(node, incarnation+1) {
			t.Errorf("index %x", i)
		}
	})
}

func TestStatusTypes(t *testing.T) {
	for s, want := range map[Status]string{
		OK: "none", NoGroup: "library", Refused: "service", Failed: "service", Dead: "network", Expired: "time", Aborted: "abort",
	} {
		if got := s.Type().String(); got != want {
			t.Errorf("%v is of type %s, want %s", s, got, want)
		}
	}
	if Status(99).Valid() || Status(99).String() != "status(99)" || Expired.Reportable() || !NoReply.Reportable() {
		t.Error("status 99, expired, no reply")
	}
}

// TestStatement: whatever a root says counts for it, and nothing that nodes on the way
// set.
func TestStatement(t *testing.T) {
	base := with(plain(), func(r *Request) {
		r.Flags, r.Bulk, r.Proof = HasBulk|Proven, Bulk{Key: 1, Length: 10}, &Proof{Floor: 1, Signature: make([]byte, SignatureSize)}
	})
	of := func(change func(*Request)) Statement {
		r, proof := *base, *base.Proof
		r.Proof = &proof
		change(&r)
		s, _ := r.Statement(nil)
		return s
	}
	seen := map[Statement]string{}
	for name, change := range map[string]func(*Request){
		"as it is":          func(*Request) {},
		"flags":             func(r *Request) { r.Flags |= Last },
		"out of band":       func(r *Request) { r.Flags |= OutOfBand },
		"service":           func(r *Request) { r.Service++ },
		"tree":              func(r *Request) { r.Tree.Radix++ },
		"kind":              func(r *Request) { r.Tree.Kind++ },
		"root":              func(r *Request) { r.Root = "h4" },
		"incarnation":       func(r *Request) { r.Incarnation++ },
		"sequence":          func(r *Request) { r.Sequence++ },
		"patience":          func(r *Request) { r.Patience++ },
		"index":             func(r *Request) { r.Index[9]++ },
		"members":           func(r *Request) { r.Digest[9]++ },
		"the living":        func(r *Request) { r.Subset, r.SubsetDigest = Alive, Digest{1} },
		"others live":       func(r *Request) { r.Subset, r.SubsetDigest = Alive, Digest{2} },
		"filter":            func(r *Request) { r.Subset, r.Filter = Filtered, Filter{0, 0, 1} },
		"another filter":    func(r *Request) { r.Subset, r.Filter = Filtered, Filter{0, 0, 2} },
		"bulk length":       func(r *Request) { r.Bulk.Length++ },
		"payload":           func(r *Request) { r.Payload = []byte("hellp") },
		"creation":          func(r *Request) { r.Flags, r.Creation = r.Flags|Creates, &Creation{Name: "g", Targets: targets()} },
		"another's name":    func(r *Request) { r.Flags, r.Creation = r.Flags|Creates, &Creation{Name: "h", Targets: targets()} },
		"the proof's floor": func(r *Request) { r.Proof.Floor++ },
	} {
		s := of(change)
		if other, twice := seen[s]; twice {
			t.Errorf("%q and %q are one statement", name, other)
		}
		seen[s] = name
	}
	for name, change := range map[string]func(*Request){
		"level":     func(r *Request) { r.Level++ },
		"late":      func(r *Request) { r.Late++ },
		"bulk key":  func(r *Request) { r.Bulk.Key++ },
		"signature": func(r *Request) { r.Proof.Signature = bytes.Repeat([]byte{1}, SignatureSize) },
		"tags":      func(r *Request) { r.Proof.Signature, r.Proof.Tags = nil, make([]byte, TagSize) },
	} {
		if of(change) != of(func(*Request) {}) {
			t.Errorf("%s is of each node on the way, and counts", name)
		}
	}
}

// FuzzQuestion and answers: whatever is read is written as it was.
func FuzzQuestion(f *testing.F) {
	f.Add((&Question{Secret: [SecretSize]byte{1}}).Append(nil))
	f.Add((&Answer{Incarnation: 5, Floor: 3}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var q Question
		var a Answer
		isQuestion, isAnswer := q.Decode(b) == nil, a.Decode(b) == nil
		switch {
		case isQuestion && (!IsQuestion(b) || isAnswer || !bytes.Equal(q.Append(nil), b)):
			t.Errorf("%x is read as question %+v", b, q)
		case isAnswer && (!IsAnswer(b) || !bytes.Equal(a.Append(nil), b)):
			t.Errorf("%x is read as answer %+v", b, a)
		}
	})
}
