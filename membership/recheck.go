package membership

import (
	"log/slog"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// recheckEvery is how often a node looks whether files of certificates have changed.
const recheckEvery = 5 * time.Second

// recheck has births be checked again when certificates, authorities or revocation lists have
// changed since an edition, and the node's own be signed by its new certificate.
func (n *Node) recheck(edition uint64) {
	tick := time.NewTicker(recheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-tick.C:
		}
		before := edition
		for now := n.source.Edition(); now != edition; now = n.source.Edition() { // files change one after the other
			edition = now
			n.checkBirths()
		}
		if edition != before {
			n.post(item{kind: rechecks})
		}
	}
}

// checkBirths checks all births that are known here, since that takes long: the loop, which does so next, finds
// them checked.
func (n *Node) checkBirths() {
	var records [][]byte
	if err := n.ask(n.ctx, func(s *stepper) { records = s.members().Records() }); err != nil {
		return
	}
	for _, record := range records {
		if o, err := n.identity.origin(record); err != nil && string(o.ID) != string(n.id) {
			n.log.Warn("what proved a node does not count any more: it leaves the view, unless a neighbour has its birth signed anew", slog.String("member", gossip.ID(o.ID).Name()), slog.Any("error", err))
		}
	}
}

// recheck has the core take what the certificates are worth now.
func (s *stepper) recheck() {
	if err := s.n.identity.renew(); err != nil {
		s.n.log.Error("the node's birth is not signed by its new certificate: it ends for others when they do not take the former one any more", slog.Any("error", err))
	}
	s.input(member.Input{Kind: member.Recheck})
}
