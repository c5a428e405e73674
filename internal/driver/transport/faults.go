package transport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// ErrFaults is wrapped by all errors of Faults.Validate.
var ErrFaults = errors.New("transport: invalid faults")

// Faults are the misfortunes of the datagrams that a Conn sends, each a
// probability from 0 to 1. Its zero value harms none.
type Faults struct {
	Loss      float64 // never sent
	Duplicate float64 // sent twice
	Reorder   float64 // held back until the next batch was sent, or until the owner reads
	Seed      uint64  // the same seed and the same messages have the same fate
}

// Validate reports what is wrong with f.
func (f Faults) Validate() error {
	for _, p := range []struct {
		name  string
		value float64
	}{{"loss", f.Loss}, {"duplicate", f.Duplicate}, {"reorder", f.Reorder}} {
		if !(p.value >= 0 && p.value <= 1) {
			return fmt.Errorf("%w: %s is %v, want 0 to 1", ErrFaults, p.name, p.value)
		}
	}
	return nil
}

// FaultCounters count what a Faulty did.
type FaultCounters struct{ Lost, Duplicated, Reordered uint64 }

// Faulty is a Conn that harms what it sends.
type Faulty struct {
	Conn
	faults Faults

	mu     sync.Mutex // guards what follows
	random *rand.Rand
	batch  []Message // scratch
	held   []Message // copies of their own

	lost, duplicated, reordered atomic.Uint64
}

// WithFaults returns a Conn that sends over c, with faults. It owns c.
func WithFaults(c Conn, f Faults) (*Faulty, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	return &Faulty{Conn: c, faults: f, random: rand.New(rand.NewPCG(f.Seed, 0))}, nil
}

// WriteBatch implements Conn.
func (f *Faulty) WriteBatch(messages []Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batch = f.batch[:0]
	delayed := f.held
	f.held = nil
	for i := range messages {
		m := &messages[i]
		m.Each(func(head, body []byte) { f.meet(Message{To: m.To, Head: head, Body: body}) })
	}
	f.batch = append(f.batch, delayed...)
	return f.Conn.WriteBatch(f.batch)
}

// meet lets one datagram meet its fate.
func (f *Faulty) meet(m Message) {
	if f.strikes(f.faults.Loss, &f.lost) {
		return
	}
	if f.strikes(f.faults.Duplicate, &f.duplicated) {
		f.batch = append(f.batch, m)
	}
	if f.strikes(f.faults.Reorder, &f.reordered) {
		f.held = append(f.held, Message{To: m.To, Body: append(append([]byte(nil), m.Head...), m.Body...)})
		return
	}
	f.batch = append(f.batch, m)
}

// ReadBatch implements Conn.
func (f *Faulty) ReadBatch(packets []Packet, until time.Time) (int, error) {
	f.mu.Lock()
	held := f.held
	f.held = nil
	f.mu.Unlock()
	if len(held) > 0 {
		if err := f.Conn.WriteBatch(held); err != nil {
			return 0, err
		}
	}
	return f.Conn.ReadBatch(packets, until)
}

// strikes draws from every message's fate, and counts.
func (f *Faulty) strikes(probability float64, count *atomic.Uint64) bool {
	if f.random.Float64() >= probability {
		return false
	}
	count.Add(1)
	return true
}

// Faults returns what f did so far.
func (f *Faulty) Faults() FaultCounters {
	return FaultCounters{f.lost.Load(), f.duplicated.Load(), f.reordered.Load()}
}
