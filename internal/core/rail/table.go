package rail

// table numbers things. A number is not used twice: a place has another generation each time.
type table[T any] struct {
	places []place[T]
	free   []uint32
}

type place[T any] struct {
	item       *T
	generation uint32
}

// add returns the number of a new item, not 0.
func (t *table[T]) add(item *T) uint64 {
	if len(t.free) == 0 {
		t.free = append(t.free, uint32(len(t.places)))
		t.places = append(t.places, place[T]{})
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	p := &t.places[i]
	p.item = item
	return uint64(p.generation)<<32 | uint64(i+1)
}

// at returns the place of a number; nil: it has no item now.
func (t *table[T]) at(id uint64) *place[T] {
	i := uint32(id) - 1
	if i >= uint32(len(t.places)) {
		return nil
	}
	p := &t.places[i]
	if p.item == nil || p.generation != uint32(id>>32) {
		return nil
	}
	return p
}

// get returns the item of a number; nil: none.
func (t *table[T]) get(id uint64) *T {
	if p := t.at(id); p != nil {
		return p.item
	}
	return nil
}

// remove ends a number.
func (t *table[T]) remove(id uint64) {
	if p := t.at(id); p != nil {
		p.item = nil
		p.generation++
		t.free = append(t.free, uint32(id)-1)
	}
}

// links are an item's place in a list.
type links[T any] struct {
	next, prev *T
	in         *list[T]
}

// list is a list of requests, with the links inside them.
type list[T any] struct {
	first, last *T
	of          func(*T) *links[T]
}

// push appends x.
func (l *list[T]) push(x *T) { l.insert(x, nil) }

// insert puts x before another item; nil: at the end.
func (l *list[T]) insert(x, before *T) {
	k := l.of(x)
	k.in, k.next = l, before
	if before == nil {
		k.prev, l.last = l.last, x
	} else {
		b := l.of(before)
		k.prev, b.prev = b.prev, x
	}
	if k.prev == nil {
		l.first = x
	} else {
		l.of(k.prev).next = x
	}
}

// remove takes x out, if it is in the list.
func (l *list[T]) remove(x *T) {
	k := l.of(x)
	if k.in != l {
		return
	}
	if k.prev == nil {
		l.first = k.next
	} else {
		l.of(k.prev).next = k.next
	}
	if k.next == nil {
		l.last = k.prev
	} else {
		l.of(k.next).prev = k.prev
	}
	*k = links[T]{}
}

// pop takes out the first item; nil: there is none.
func (l *list[T]) pop() *T {
	x := l.first
	if x != nil {
		l.remove(x)
	}
	return x
}
