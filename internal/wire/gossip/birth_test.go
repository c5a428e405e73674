package gossip

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

func origin() Origin {
	return Origin{
		ID: node(1, Version{}).ID, Incarnation: 300, Key: [32]byte{1, 2, 3}, Signed: 301, Signature: []byte("signature"),
		Certificates: [][]byte{[]byte("leaf"), []byte("intermediate")},
	}
}

// TestOrigin: a record is written and read as its file says, and none with less, more, or
// too many certificates.
func TestOrigin(t *testing.T) {
	o := origin()
	record := o.Append(nil)
	transcript.Listings(t, filepath.Join("testdata", "birth"), []transcript.Listing{{
		Name: "record", Text: listing("n1 in incarnation 300, whose key two certificates prove", record), Read: func(t *testing.T, raw []byte) {
			var got Origin
			if err := got.Decode(raw); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(o, got); diff != "" {
				t.Errorf("read as another (-want +got):\n%s", diff)
			}
		},
	}})
	large := o
	large.Certificates = [][]byte{make([]byte, MaxBirth)}
	many := o
	many.Certificates = make([][]byte, maxCertificates+1)
	for what, b := range map[string][]byte{
		"nothing": nil, "less": record[:len(record)-1], "more": append(bytes.Clone(record), 0), "too large": large.Append(nil), "too many": many.Append(nil),
	} {
		var got Origin
		if err := got.Decode(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

// TestStatement: no two lives, keys or zones have one statement.
func TestStatement(t *testing.T) {
	seen := map[string]bool{}
	for _, change := range []func(*Origin){
		func(*Origin) {}, func(o *Origin) { o.ID = []byte("n1@10.0.0.1:7947") }, func(o *Origin) { o.Incarnation++ }, func(o *Origin) { o.Key[31]++ }, func(o *Origin) { o.Signed++ },
	} {
		for _, zone := range []string{"", "1", "12"} {
			o := origin()
			change(&o)
			s := string(o.Statement([]byte(zone)))
			if seen[s] {
				t.Errorf("%q twice", s)
			}
			seen[s] = true
		}
	}
}

// FuzzOrigin: what is read is written again as it was.
func FuzzOrigin(f *testing.F) {
	o := origin()
	f.Add(o.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var o Origin
		if o.Decode(b) == nil && !bytes.Equal(o.Append(nil), b) {
			t.Errorf("%x is written again as %x", b, o.Append(nil))
		}
	})
}

// TestReplyIsOneDatagram: a reply with as long a record and IDs as it may have, and all
// proofs, is one packet.
func TestReplyIsOneDatagram(t *testing.T) {
	most := Version{^uint64(0), MaxMinor}
	for _, own := range []int{20, MaxID} {
		for _, other := range []int{20, MaxID} {
			p := Packet{
				Type: DiscoveryReply, From: Entry{ID: make([]byte, own), Version: most, Proof: signed}, Nonce: 1, About: Reference{Version: most}, Size: ^uint32(0),
				Record: make([]byte, MaxReply-own-other), Alives: []Entry{{ID: make([]byte, other), Version: most, Proof: signed}},
			}
			pieces := p.Pieces(MaxDatagram)
			if size := len(pieces[0].Append(nil)) + maxSeal; len(pieces) != 1 || size > MaxDatagram {
				t.Errorf("IDs of %d and %d bytes: %d pieces of %d bytes", own, other, len(pieces), size)
			}
		}
	}
}
