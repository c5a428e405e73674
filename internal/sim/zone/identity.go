package zone

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// identity stands for a node's keys: anybody could make its signatures, but no node of a
// world does. A birth is checked once by each node, by a thread beside its core's.
type identity struct {
	w    *World
	node int
	key  member.LifeKey
}

func newIdentity(w *World, node int, id gossip.ID, incarnation uint64) *identity {
	return &identity{w, node, lifeKey(id, incarnation)}
}

func lifeKey(id gossip.ID, incarnation uint64) member.LifeKey {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte(id), incarnation))
}

func sign(key member.LifeKey, statement []byte) (s member.Signature) {
	sum := sha256.Sum256(append(key[:], statement...))
	copy(s[:], sum[:])
	return s
}

// spend has the node be busy for longer.
func (k *identity) spend(d core.Time) {
	n := &k.w.nodes[k.node]
	n.busy = max(n.busy, k.w.now) + d
}

// Birth implements member.Identity, as the other methods do.
func (k *identity) Birth() []byte { return k.key[:] }

func (k *identity) Sign(statement []byte) *member.Signature {
	k.spend(core.Time(k.w.cfg.Cost.Sign))
	s := sign(k.key, statement)
	return &s
}

func (k *identity) Verify(id gossip.ID, incarnation uint64, record []byte) (member.LifeKey, bool) {
	key := lifeKey(id, incarnation)
	return key, bytes.Equal(key[:], record)
}

// Later implements member.Identity: nothing is renewed.
func (k *identity) Later([]byte, []byte) bool { return false }

func (k *identity) Check(key member.LifeKey, statement []byte, s *member.Signature) bool {
	k.spend(core.Time(k.w.cfg.Cost.Check))
	return sign(key, statement) == *s
}

// check has births be checked before a node takes them.
func (w *World) check(i int32, it *item) {
	n := &w.nodes[i]
	n.checks = max(n.checks, w.now)
	for _, b := range it.input.Message.Births {
		if n.core.Version(b.Node).Incarnation < b.Incarnation {
			n.checks += core.Time(w.cfg.Cost.Birth)
		}
	}
	it.checked = true
	later := *it
	w.queue.Push(n.checks, event{kind: packetDue, node: i, life: n.life, item: &later})
}
