package membership

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// identity is by what a node proves its life: a key that it draws at its start, and a record
// in which its host's certificate says that the key is this life's. It may be used from
// several goroutines.
type identity struct {
	source *pki.Source
	zone   []byte
	key    ed25519.PrivateKey
	record []byte

	expected atomic.Int64 // births that were asked for, and have not been foreseen
}

// newIdentity returns the identity of a life that begins now.
func newIdentity(source *pki.Source, zone []byte, id gossip.ID, incarnation uint64) (*identity, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("membership: drawing a key: %w", err)
	}
	o := gossip.Origin{ID: []byte(id), Incarnation: incarnation, Key: [32]byte(public)}
	if o.Signature, o.Certificates, err = source.Sign(o.Statement(zone)); err != nil {
		return nil, fmt.Errorf("membership: proving this life: %w", err)
	}
	record := o.Append(nil)
	if err := o.Decode(record); err != nil {
		return nil, fmt.Errorf("%w: the certificate, with those between it and its authority, is too large: %w", ErrConfig, err)
	}
	return &identity{source: source, zone: zone, key: private, record: record}, nil
}

// Birth implements member.Identity, as the next methods do.
func (k *identity) Birth() []byte { return k.record }

func (k *identity) Sign(statement []byte) *member.Signature {
	s := member.Signature(ed25519.Sign(k.key, statement))
	return &s
}

func (k *identity) Verify(id gossip.ID, incarnation uint64, record []byte) (member.LifeKey, bool) {
	o, err := k.origin(record)
	return o.Key, err == nil && gossip.ID(o.ID) == id && o.Incarnation == incarnation
}

func (k *identity) Check(key member.LifeKey, statement []byte, s *member.Signature) bool {
	return ed25519.Verify(key[:], statement, s[:])
}

// origin returns what a record says, if the host of its node has signed it. The certificate
// counts if it was good when the life began: lives may be longer than certificates.
func (k *identity) origin(record []byte) (o gossip.Origin, err error) {
	if err := o.Decode(record); err != nil {
		return o, err
	}
	at := time.Now()
	if began := time.Unix(0, int64(min(o.Incarnation, 1<<63-1))); began.Before(at) {
		at = began
	} else {
		at = at.Truncate(time.Minute) // of a clock that was ahead: remembered for a while
	}
	who, err := k.source.Signed(o.Statement(k.zone), o.Signature, o.Certificates, at)
	if want := (pki.Identity{Role: pki.Host, Name: peering.HostOf(gossip.ID(o.ID).Name())}); err == nil && who != want {
		err = fmt.Errorf("%w: %s says that it is %q", pki.ErrWrongRole, who, o.ID)
	}
	return o, err
}

// expects notes that births are asked for.
func (k *identity) expects(m *member.Message) {
	if k != nil && m.Type == gossip.Wants {
		k.expected.Add(int64(len(m.Alives)))
	}
}

// foresee checks births that came in a frame before the loop gets them: the loop finds them
// checked. It checks no more than were asked for.
func (k *identity) foresee(frame []byte) {
	if k == nil || len(frame) < frameHead || frame[0] != message {
		return
	}
	if t, err := gossip.TypeOf(frame[frameHead:]); err != nil || t != gossip.Births {
		return
	}
	var p gossip.Packet
	if p.Decode(frame[frameHead:]) != nil {
		return
	}
	for _, b := range p.Births {
		if k.expected.Add(-1) < 0 {
			k.expected.Add(1)
			return
		}
		_, _ = k.origin(b.Record) // what is wrong the loop finds as well
	}
}
