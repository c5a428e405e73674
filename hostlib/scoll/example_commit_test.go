package scoll_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// participant takes part in transactions. Its reply to a request is the number of
// nodes of its subtree that voted yes.
type participant struct {
	node      string
	mu        sync.Mutex
	prepared  map[string]bool
	committed []string
}

func (p *participant) callbacks() scoll.Callbacks {
	return scoll.Callbacks{PreRequest: p.prepare, IncomingRequest: p.run, IncomingReply: p.gather, PostReply: p.reply}
}

func (p *participant) prepare(r *scoll.Request) error {
	verb, _, ok := strings.Cut(string(r.Payload()), " ")
	if !ok || verb != "prepare" && verb != "commit" && verb != "abort" {
		return fmt.Errorf("%q is no step of a transaction", r.Payload())
	}
	if !r.IsRoot() {
		r.SetPrivate(&tally{})
	}
	for i := range r.NumChildren() {
		if err := r.PostReplySize(i, 4, nil); err != nil {
			return err
		}
	}
	return nil
}

// run votes on a transaction, or executes the decision.
func (p *participant) run(r *scoll.Request) error {
	verb, tx, _ := strings.Cut(string(r.Payload()), " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	yes := true
	switch verb {
	case "prepare":
		yes = tx != "tx2" || p.node != "mds5" // which has a conflict
		p.prepared[tx] = yes
	case "commit":
		p.committed = append(p.committed, tx)
		delete(p.prepared, tx)
	case "abort":
		delete(p.prepared, tx)
	}
	if yes {
		r.Private().(*tally).add(1)
	}
	return nil
}

func (p *participant) gather(reply *scoll.Reply) {
	if reply.Status == scoll.StatusOK && len(reply.Body) == 4 {
		reply.Request.Private().(*tally).add(binary.BigEndian.Uint32(reply.Body))
	}
}

func (p *participant) reply(r *scoll.Request) {
	_ = r.Reply(binary.BigEndian.AppendUint32(nil, r.Private().(*tally).n))
}

// A coordinator commits transactions in two phases; a server that votes no, or is
// not reached, prevents the commit.
func Example_twoPhaseCommit() {
	var servers []*participant
	f := launch("mds", 8, 2, func(node string) scoll.Callbacks {
		p := &participant{node: node, prepared: map[string]bool{}}
		servers = append(servers, p)
		return p.callbacks()
	})
	defer f.close()
	g := f.group(scoll.GroupSpec{Name: "transaction servers"})
	phase := func(verb, tx string) (yes uint32) {
		votes := &tally{}
		if err := run(g, scoll.Broadcast{Payload: []byte(verb + " " + tx), Private: votes}); err != nil {
			fmt.Println(err)
		}
		return votes.n
	}
	for _, tx := range []string{"tx1", "tx2", "tx3"} {
		decision := "abort"
		yes := phase("prepare", tx)
		if yes == 8 {
			decision = "commit"
		}
		done := phase(decision, tx)
		fmt.Printf("%s: %d of 8 are prepared: %s, done on %d\n", tx, yes, decision, done)
	}
	servers[7].mu.Lock()
	defer servers[7].mu.Unlock()
	fmt.Println("mds7 has committed", servers[7].committed)
	// Output:
	// tx1: 8 of 8 are prepared: commit, done on 8
	// tx2: 7 of 8 are prepared: abort, done on 8
	// tx3: 8 of 8 are prepared: commit, done on 8
	// mds7 has committed [tx1 tx3]
}
