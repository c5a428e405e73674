package offload

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/reduce"
)

// memory has a request run once, whatever ways it comes, and remembers the
// replies to the last ones: that of request n where n + len(slots) was never
// seen.
type memory struct {
	mu    sync.Mutex
	slots []*once // by number modulo their count
}

// once is a request's run.
type once struct {
	number uint64
	done   chan struct{}
	bytes  []byte // the reply, as a vector of package reduce
	err    error
}

func newMemory(most int) *memory { return &memory{slots: make([]*once, most)} }

// enter returns a request's run, and whether it is the caller's to do. It fails
// for requests that are forgotten.
func (m *memory) enter(number uint64) (o *once, mine bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slot := &m.slots[number%uint64(len(m.slots))]
	switch o := *slot; {
	case o == nil || o.number < number:
		*slot = &once{number: number, done: make(chan struct{})}
		return *slot, true, nil
	case o.number == number:
		return o, false, nil
	default:
		return nil, false, fmt.Errorf("%w: request %d, after %d", ErrUnknown, number, o.number)
	}
}

// run runs a request unless it was run before, and returns the reply, which is
// shared.
func (g *Group[T]) run(number uint64, r *Request) ([]byte, error) {
	o, mine, err := g.memory.enter(number)
	if err != nil {
		return nil, err
	}
	if mine {
		o.bytes, o.err = g.service.reply(r)
		close(o.done)
	}
	<-o.done
	return o.bytes, o.err
}

// reply calls the service; a panic is an error.
func (s *Service[T]) reply(r *Request) (b []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			b, err = nil, &scoll.PanicError{Callback: "run", Value: v, Stack: debug.Stack()}
		}
	}()
	v := make([]T, s.cfg.Elements)
	if err := s.cfg.Run(r, v); err != nil {
		return nil, err
	}
	b = make([]byte, len(v)*reduce.TypeOf[T]().Size())
	reduce.Put(b, v)
	return b, nil
}
