package runner

import "sync"

// Tasks are goroutines that somebody waits for, who wants no new ones then. The zero value
// has none.
type Tasks struct {
	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
}

// Go runs f on a goroutine that Close waits for. It reports false once that has begun.
func (t *Tasks) Go(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.all.Go(f)
	}
	return !t.closed
}

// Repeated returns what runs f as Go does, again and again, and allocates nothing by that.
func (t *Tasks) Repeated(f func()) (start func() bool) {
	run := func() {
		defer t.all.Done()
		f()
	}
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.closed {
			t.all.Add(1)
			go run()
		}
		return !t.closed
	}
}

// Close lets no goroutine begin any more, and waits for those that run.
func (t *Tasks) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.all.Wait()
}
