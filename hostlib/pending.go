package hostlib

// pending are the requests of a communicator's tree that are not done. Their operations
// have numbers that follow each other.
type pending struct {
	ring         []*Request // of number n at n mod len, a power of two; nil: it is done
	oldest, next uint64     // numbers; what is before oldest is done
}

func (f *pending) at(n uint64) **Request { return &f.ring[n&uint64(len(f.ring)-1)] }

// add takes a request in, and returns its number.
func (f *pending) add(r *Request) (number uint64) {
	if f.next-f.oldest == uint64(len(f.ring)) {
		wider := pending{ring: make([]*Request, max(1, 2*len(f.ring)))}
		for n := f.oldest; n != f.next; n++ {
			*wider.at(n) = *f.at(n)
		}
		f.ring = wider.ring
	}
	*f.at(f.next) = r
	f.next++
	return f.next - 1
}

// take returns the request of a number, which is done; nil: it was already.
func (f *pending) take(number uint64) *Request {
	if number-f.oldest >= f.next-f.oldest {
		return nil
	}
	r := *f.at(number)
	*f.at(number) = nil
	for f.areSome() && *f.at(f.oldest) == nil {
		f.oldest++
	}
	return r
}

func (f *pending) areSome() bool { return f.oldest != f.next }

// each calls do with every request, the oldest first.
func (f *pending) each(do func(*Request)) {
	for n := f.oldest; n != f.next; n++ {
		if r := *f.at(n); r != nil {
			do(r)
		}
	}
}
