package session

import "github.com/tributary-fabric/tributary/internal/wire"

// flow moves the number of contributions on their way within W, by additive
// increase and multiplicative decrease: it halves at most once for each window,
// and grows by one for each window of results. Like TCP Veno (Fu and Liew, 2003)
// it tells congestion from losses by chance: a loss counts as congestion if the
// results show a queue, or if more than a quarter of the window was lost.
type flow struct {
	cut    uint32 // present window is W - cut, so that the zero value is W
	gains  uint32 // results since the last growth
	until  uint32 // losses of numbers before this one belong to the present window
	losses uint32 // of the present window
	halved bool   // in the present window
	begun  bool   // until is set
}

// queue is what results tell of the queues on their way.
type queue uint8

const (
	short    queue = iota
	passing        // the results are slower than they need be
	standing       // even the fastest of the last results are
)

// window returns the present window of an epoch with the window most.
func (f *flow) window(most uint32) uint32 {
	if f.cut >= most {
		return 1
	}
	return most - f.cut
}

func (f *flow) gained(most uint32) {
	if f.cut == 0 {
		return
	}
	if f.gains++; f.gains >= f.window(most) {
		f.gains = 0
		f.cut--
	}
}

// lost notes that number n had to be sent again, when next was the next
// number to send. A queue that passes, as the member's own packets make one,
// lowers the window to a quarter of W at most: then a loss is found and repaired
// before the rest of W is used up.
func (f *flow) lost(n, next, most uint32, q queue) {
	if !f.begun || !wire.Newer(f.until, n) {
		f.begun, f.until, f.losses, f.halved = true, next, 0, false
	}
	f.losses++
	w, least := f.window(most), most
	switch {
	case q == standing || f.losses > max(w/4, 1):
		least = 1
	case q == passing:
		least = max(most/4, 1)
	}
	if f.halved || w <= least {
		return
	}
	f.halved, f.gains = true, 0
	f.cut = most - max(w/2, least)
}
