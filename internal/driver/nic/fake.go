package nic

import (
	"context"
	"slices"
	"sync"
)

// Fake is a machine whose interfaces are what it is given. Its zero value has
// none.
type Fake struct {
	mu    sync.Mutex
	list  []Interface
	err   error
	stirs map[chan struct{}]bool // of those who watch
}

// Set makes all the interfaces, and err what Read returns in their place if it
// is not nil.
func (f *Fake) Set(all []Interface, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list, f.err = slices.Clone(all), err
	for stir := range f.stirs {
		select {
		case stir <- struct{}{}:
		default: // it has yet to look at the change before
		}
	}
}

// Read implements Source.
func (f *Fake) Read() ([]Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	return slices.Clone(f.list), nil
}

// Watch implements Source.
func (f *Fake) Watch(ctx context.Context, changed func()) error {
	stir := make(chan struct{}, 1)
	f.watch(stir, true)
	defer f.watch(stir, false)
	for {
		changed()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stir:
		}
	}
}

func (f *Fake) watch(stir chan struct{}, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stirs == nil {
		f.stirs = map[chan struct{}]bool{}
	}
	if on {
		f.stirs[stir] = true
	} else {
		delete(f.stirs, stir)
	}
}
