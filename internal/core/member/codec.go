package member

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Codec turns messages into packets and packets into messages, with the indices
// of a directory. It is not safe for concurrent use.
type Codec struct {
	dir    *Directory
	packet gossip.Packet
}

// NewCodec returns a codec for the cores of a directory.
func NewCodec(dir *Directory) *Codec { return &Codec{dir: dir} }

// Pieces returns the packets of a message, of limit bytes at most once they are
// sealed. Their lists are the codec's until its next call.
func (k *Codec) Pieces(m *Message, limit int) []gossip.Packet {
	p := &k.packet
	*p = gossip.Packet{
		Type: m.Type, Target: m.Target, Need: m.Need, Tag: m.Tag, Reason: m.Reason, Nonce: m.Nonce,
		Boot: m.Boot, Stealth: m.Stealth, Answer: m.Answer,
		Proof: proofOf(m.Proof), Record: m.Birth, Size: uint32(m.Size),
		Leaves: p.Leaves[:0], Alives: p.Alives[:0], Suspicions: p.Suspicions[:0], Dead: p.Dead[:0], Watchers: p.Watchers[:0],
		Births: p.Births[:0],
	}
	switch m.Type {
	case gossip.Hello, gossip.Welcome, gossip.Probe, gossip.Relay, gossip.DiscoveryRequest, gossip.DiscoveryReply:
		p.From = k.entry(m.From)
	}
	switch m.Type {
	case gossip.Echo:
		p.About, p.Proof = k.reference(m.From), proofOf(m.From.Proof)
	case gossip.Nack:
		p.About = k.reference(m.From)
	case gossip.Relay:
		p.About = k.reference(m.About)
	case gossip.Refuse, gossip.Probe, gossip.DiscoveryReply:
		p.About.Version = m.About.Version
	}
	k.lists(m)
	return p.Pieces(limit)
}

func (k *Codec) lists(m *Message) {
	p := &k.packet
	for _, d := range m.Leaves {
		p.Leaves = append(p.Leaves, gossip.Departure{Reference: gossip.Reference{Key: k.dir.Key(d.Node), Version: d.Version}, Exit: d.Exit, Proof: proofOf(d.Proof)})
	}
	for _, e := range m.Alives {
		if m.Type == gossip.Dispute || m.Type == gossip.Wants {
			p.Dead = append(p.Dead, k.reference(e))
		} else {
			p.Alives = append(p.Alives, k.entry(e))
		}
	}
	for _, s := range m.Suspicions {
		p.Suspicions = append(p.Suspicions, gossip.Suspicion{Reporter: s.Reporter, Suspect: gossip.Reference{Key: k.dir.Key(s.Suspect), Version: s.Version}, Proof: proofOf(s.Proof)})
	}
	for i := range m.Births {
		b := &m.Births[i]
		p.Births = append(p.Births, gossip.Birth{Key: k.dir.Key(b.Node), Incarnation: b.Incarnation, Record: b.Record})
	}
	for _, i := range m.Watchers {
		p.Watchers = append(p.Watchers, k.dir.Key(i))
	}
}

func (k *Codec) reference(e Entry) gossip.Reference {
	return gossip.Reference{Key: k.dir.Key(e.Node), Version: e.Version}
}

func (k *Codec) entry(e Entry) gossip.Entry {
	return gossip.Entry{Key: k.dir.Key(e.Node), ID: k.dir.raw(e.Node), Version: e.Version, Proof: proofOf(e.Proof)}
}

// proofOf returns a signature as packets have it.
func proofOf(s *Signature) []byte {
	if s == nil {
		return nil
	}
	return s[:]
}

// signature returns that of a packet.
func signature(b []byte) *Signature {
	if len(b) == 0 {
		return nil
	}
	s := Signature(b)
	return &s
}

// Message returns the message of a packet, not sealed any more. What it says of
// nodes that the directory does not know and that it does not introduce is left
// out: it is news of nobody. An ID that is new is in the directory until the next
// step of a core that does not hold it. The error wraps gossip.ErrMalformed or
// gossip.ErrVersion.
func (k *Codec) Message(b []byte) (*Message, error) {
	p := &k.packet
	if err := p.Decode(b); err != nil {
		return nil, err
	}
	m := &Message{
		Type: p.Type, Target: p.Target, Need: p.Need, Tag: p.Tag, Reason: p.Reason, Nonce: p.Nonce,
		Boot: p.Boot, Stealth: p.Stealth, Answer: p.Answer, From: Entry{Node: Nobody}, Proof: signature(p.Proof),
		Birth: slices.Clone(p.Record), Size: int(p.Size), About: Entry{Node: Nobody, Version: p.About.Version},
	}
	if len(p.From.ID) > 0 {
		from, err := k.introduced(&p.From)
		if err != nil {
			return nil, err
		}
		m.From = from
	}
	k.whom(m)
	return m, k.listed(m)
}

// whom finds who an answer or a request is about: Nobody where the directory
// does not know it.
func (k *Codec) whom(m *Message) {
	if m.Type != gossip.Echo && m.Type != gossip.Nack && m.Type != gossip.Relay {
		return
	}
	i, ok := k.dir.Find(k.packet.About.Key)
	if !ok {
		i = Nobody
	}
	switch m.Type {
	case gossip.Echo:
		m.From, m.Proof = Entry{i, k.packet.About.Version, m.Proof}, nil
	case gossip.Nack:
		m.From = Entry{Node: i, Version: k.packet.About.Version}
	default:
		m.About.Node = i
	}
}

func (k *Codec) listed(m *Message) error {
	p := &k.packet
	for i := range p.Leaves {
		if at, ok := k.dir.Find(p.Leaves[i].Key); ok {
			m.Leaves = append(m.Leaves, Departure{at, p.Leaves[i].Version, p.Leaves[i].Exit, signature(p.Leaves[i].Proof)})
		}
	}
	if n := len(p.Alives) + len(p.Dead); n > 0 {
		m.Alives = make([]Entry, 0, n)
	}
	for i := range p.Alives {
		e, err := k.introduced(&p.Alives[i])
		if err != nil {
			return err
		}
		m.Alives = append(m.Alives, e)
	}
	for _, d := range p.Dead {
		if at, ok := k.dir.Find(d.Key); ok {
			m.Alives = append(m.Alives, Entry{Node: at, Version: d.Version})
		}
	}
	for i := range p.Births {
		b := &p.Births[i]
		if at, ok := k.dir.Find(b.Key); ok {
			m.Births = append(m.Births, Birth{at, b.Incarnation, slices.Clone(b.Record)})
		}
	}
	for _, s := range p.Suspicions {
		if at, ok := k.dir.Find(s.Suspect.Key); ok {
			m.Suspicions = append(m.Suspicions, Suspicion{s.Reporter, at, s.Suspect.Version, signature(s.Proof)})
		}
	}
	for _, key := range p.Watchers {
		at, ok := k.dir.Find(key)
		if !ok {
			at = Nobody // its place among the watchers counts
		}
		m.Watchers = append(m.Watchers, at)
	}
	return nil
}

// introduced returns the node of an entry, which may be new.
func (k *Codec) introduced(e *gossip.Entry) (Entry, error) {
	if i, ok := k.dir.Find(e.Key); ok {
		if !bytes.Equal(k.dir.raw(i), e.ID) || e.ID[0] == '@' {
			return Entry{}, fmt.Errorf("%w: %q has the key of %q", gossip.ErrMalformed, e.ID, k.dir.ID(i))
		}
		return Entry{i, e.Version, signature(e.Proof)}, nil
	}
	if !e.Valid() {
		return Entry{}, fmt.Errorf("%w: %q is not an ID with this key", gossip.ErrMalformed, e.ID)
	}
	return Entry{k.dir.AddKeyed(gossip.ID(e.ID), e.Key), e.Version, signature(e.Proof)}, nil
}
