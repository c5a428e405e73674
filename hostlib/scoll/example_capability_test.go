package scoll_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// keeper stores capabilities. A request's payload is the SHA-256 sum of the
// capability, followed by the capability unless that is bulk data. A reply is the
// number of nodes of the subtree that hold it.
type keeper struct {
	layout func(scoll.Index) (*scoll.Members, error)
	mu     sync.Mutex
	holds  map[[sha256.Size]byte][]byte
}

func newKeeper() *keeper { return &keeper{holds: map[[sha256.Size]byte][]byte{}} }

func (k *keeper) callbacks() scoll.Callbacks {
	return scoll.Callbacks{
		MapGroup: k.layout, PreRequest: k.prepare, IncomingRequest: k.run, IncomingReply: k.gather, PostReply: k.reply,
	}
}

// prepare posts buffers for the replies and for bulk data, if any.
func (k *keeper) prepare(r *scoll.Request) error {
	if len(r.Payload()) < sha256.Size {
		return errors.New("no sum")
	}
	if !r.IsRoot() {
		r.SetPrivate(&tally{})
		r.SetBulk([][]byte{make([]byte, r.BulkLen())})
	}
	for i := range r.NumChildren() {
		if err := r.PostReplySize(i, 4, nil); err != nil {
			return err
		}
	}
	return nil
}

// run stores a copy of the capability, because children are reading the bulk data.
func (k *keeper) run(r *scoll.Request) error {
	if r.BulkErr() != nil {
		return nil // the parent knows
	}
	sum, capability := [sha256.Size]byte(r.Payload()), bytes.Clone(r.Payload()[sha256.Size:])
	if r.BulkLen() > 0 {
		capability = bytes.Join(r.Bulk(), nil)
	}
	if sha256.Sum256(capability) != sum {
		return errors.New("the capability is damaged")
	}
	k.mu.Lock()
	k.holds[sum] = capability
	k.mu.Unlock()
	r.Private().(*tally).add(1)
	return nil
}

func (k *keeper) gather(reply *scoll.Reply) {
	if reply.Status == scoll.StatusOK && len(reply.Body) == 4 {
		reply.Request.Private().(*tally).add(binary.BigEndian.Uint32(reply.Body))
	}
}

func (k *keeper) reply(r *scoll.Request) {
	if r.BulkErr() == nil {
		_ = r.Reply(binary.BigEndian.AppendUint32(nil, r.Private().(*tally).n))
	}
}

// This distributes a capability of 256 KiB, too large for a message, as bulk data,
// which every server pulls from its parent in the tree.
func Example_capabilityDistribution() {
	f := launch("ost", 16, 3, func(string) scoll.Callbacks { return newKeeper().callbacks() })
	defer f.close()
	g := f.group(scoll.GroupSpec{Name: "object servers", Tree: scoll.KNomial(4)})
	capability := bytes.Repeat([]byte("may read and write object 42 "), 1<<18/29)
	sum := sha256.Sum256(capability)
	held := &tally{}
	err := run(g, scoll.Broadcast{Payload: sum[:], Bulk: [][]byte{capability[:1000], capability[1000:]}, Private: held})
	fmt.Println(held.n, "servers hold it, error:", err)
	// Output:
	// 16 servers hold it, error: <nil>
}

// layouts has the servers that hold an object's data, by the object's number. Every
// server knows it, and learns of changes on its own.
type layouts struct {
	mu      sync.Mutex
	members map[scoll.Index]*scoll.Members
}

func (l *layouts) of(object scoll.Index) (*scoll.Members, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.members[object]
	if m == nil {
		return nil, fmt.Errorf("no object %x", object[:2])
	}
	return m, nil
}

func (l *layouts) set(object scoll.Index, servers ...scoll.Target) {
	m, err := scoll.NewMembers(4, servers)
	if err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members[object] = m
}

// This sends a capability to the servers that hold an object. All know these out of
// band, by the object's number, so no list of members travels. A server that already
// knows a new layout does not take part, and the root learns that.
func Example_outOfBandCapability() {
	known := map[string]*layouts{}
	f := launch("ost", 8, 4, func(node string) scoll.Callbacks {
		k, l := newKeeper(), &layouts{members: map[scoll.Index]*scoll.Members{}}
		k.layout = l.of
		known[node] = l
		return k.callbacks()
	})
	defer f.close()
	object, all := scoll.Index{0x12, 0x34}, f.targets()
	for _, l := range known {
		l.set(object, all[0], all[3], all[5], all[6])
	}
	g, err := f.services[0].OutOfBand(scoll.OutOfBandSpec{Name: "object 1234", Index: object})
	if err != nil {
		fmt.Println(err)
		return
	}
	capability := []byte("may read")
	sum := sha256.Sum256(capability)
	give := func() {
		held := &tally{}
		err := run(g, scoll.Broadcast{Payload: append(sum[:], capability...), Private: held})
		fmt.Println(held.n, "servers hold it, error:", err)
	}
	give()
	known["ost3"].set(object, all[0], all[3], all[5], all[7])
	give()
	// Output:
	// 4 servers hold it, error: <nil>
	// 3 servers hold it, error: scoll: 3 of 4 nodes are known to have run the request; ost3 (1 nodes) digests differ
}
