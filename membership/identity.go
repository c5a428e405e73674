package membership

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"slices"
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
	k := &identity{source: source, zone: zone, key: private}
	k.record, err = k.sign(&gossip.Origin{ID: []byte(id), Incarnation: incarnation, Key: [32]byte(public)})
	return k, err
}

// sign returns the record of a birth, signed now by the host's certificate; later than before, whatever the
// clock says.
func (k *identity) sign(o *gossip.Origin) (record []byte, err error) {
	o.Signed = max(o.Signed+1, uint64(time.Now().UnixNano()))
	if o.Signature, o.Certificates, err = k.source.Sign(o.Statement(k.zone)); err != nil {
		return nil, fmt.Errorf("membership: proving this life: %w", err)
	}
	record = o.Append(nil)
	if err := o.Decode(record); err != nil {
		return nil, fmt.Errorf("%w: the certificate, with those between it and its authority, is too large: %w", ErrConfig, err)
	}
	return record, nil
}

// renew signs this life's birth again if the host has another certificate since. It is the
// loop's, as Birth is.
func (k *identity) renew() error {
	var o gossip.Origin
	if err := o.Decode(k.record); err != nil {
		return err
	}
	before := o.Certificates
	record, err := k.sign(&o)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(before, o.Certificates, bytes.Equal) {
		k.record = record
	}
	return nil
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

func (k *identity) Later(record, than []byte) bool {
	var o, p gossip.Origin
	return o.Decode(record) == nil && p.Decode(than) == nil && o.Key == p.Key && o.Signed > p.Signed
}

// origin returns what a record says, if the host of its node has signed it. The certificate
// counts if it was good when it signed, or when the life began if that is later: lives may be
// longer than certificates. By the clock of who signed, that is, which may be ahead.
func (k *identity) origin(record []byte) (o gossip.Origin, err error) {
	if err := o.Decode(record); err != nil {
		return o, err
	}
	at := max(o.Incarnation, o.Signed)
	if err := peering.Credible(at, time.Now()); err != nil {
		return o, err
	}
	who, err := k.source.Signed(o.Statement(k.zone), o.Signature, o.Certificates, time.Unix(0, int64(at)))
	if want := (pki.Identity{Role: pki.Host, Name: peering.HostOf(gossip.ID(o.ID).Name())}); err == nil && who != want {
		err = fmt.Errorf("%w: %s says that it is %q", pki.ErrWrongRole, who, o.ID)
	}
	return o, err
}

// expects notes that births are asked for, by a core that waits for those of so many lives.
func (k *identity) expects(m *member.Message, waits int) {
	if k == nil || m.Type != gossip.Wants {
		return
	}
	for {
		n := k.expected.Load()
		if k.expected.CompareAndSwap(n, min(n+int64(len(m.Alives)), int64(waits))) {
			return
		}
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
