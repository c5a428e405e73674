package session

import "github.com/tributary-fabric/tributary/internal/wire"

// flow moves the window within W: it halves once for each window in which a
// contribution was lost, and grows by one for each window of results
// (additive increase, multiplicative decrease).
type flow struct {
	cut    uint32 // present window is W - cut, so that the zero value is W
	gains  uint32 // results since the last growth
	until  uint32 // losses of numbers before this one belong to the last halving
	halved bool
}

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
// number to send.
func (f *flow) lost(n, next, most uint32) {
	if f.halved && wire.Newer(f.until, n) {
		return
	}
	f.halved, f.until, f.gains = true, next, 0
	f.cut = most - max(f.window(most)/2, 1)
}
