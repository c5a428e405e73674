package attribute

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// pendingOffer is what is owed to a replica that is not there: a neighbour's offer that
// came before its owner was in the view, or, where version is 0, that there was
// a replica, so that neighbours will not offer it again.
type pendingOffer struct {
	from    attributes.Life
	version uint64
	noted   core.Time
}

// pending are of lives outside of the view; no more than a limit, the oldest being
// forgotten first. Digests go out once: without this, who joins after a digest
// named it, or again after it had left here alone, would stay empty for ever.
type pending struct {
	limit  int
	memory time.Duration

	owed  map[attributes.Life]pendingOffer
	order []dated   // rising; those whose date is not that of the offer are void
	lost  core.Time // until then, any life may be owed something
}

// dated is when a pending offer was noted.
type dated struct {
	life attributes.Life
	at   core.Time
}

// add notes a pending offer. A newer offer takes the place of an older one, and that
// there was a replica that of any.
func (d *pending) add(now core.Time, life attributes.Life, n pendingOffer) {
	d.expire(now)
	if d.owed == nil {
		d.owed = map[attributes.Life]pendingOffer{}
	}
	old, known := d.owed[life]
	if known && n.version > 0 && (old.version == 0 || n.version <= old.version) {
		return
	}
	if n.noted = now; known {
		n.noted = old.noted
	} else {
		d.order = append(d.order, dated{life, now})
	}
	d.owed[life] = n
	if len(d.owed) > d.limit {
		d.lost = now.Add(d.memory)
		d.drop()
	}
	if len(d.order) > 2*d.limit {
		d.order = slices.DeleteFunc(d.order, d.void)
	}
}

// settle returns what is owed to a life, and forgets it.
func (d *pending) settle(now core.Time, life attributes.Life) (pendingOffer, bool) {
	n, known := d.owed[life]
	delete(d.owed, life)
	return n, known || now < d.lost
}

// expire forgets what is older than memory: who comes back after that comes
// over new connections, whose digests report all.
func (d *pending) expire(now core.Time) {
	for len(d.order) > 0 && now.Sub(d.order[0].at) > d.memory {
		if !d.void(d.order[0]) {
			delete(d.owed, d.order[0].life)
		}
		d.order = d.order[1:]
	}
}

func (d *pending) void(o dated) bool {
	n, known := d.owed[o.life]
	return !known || n.noted != o.at
}

// drop forgets the oldest.
func (d *pending) drop() {
	for dropped := false; !dropped && len(d.order) > 0; d.order = d.order[1:] {
		if dropped = !d.void(d.order[0]); dropped {
			delete(d.owed, d.order[0].life)
		}
	}
}
