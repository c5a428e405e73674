package field

import (
	"errors"
	"sync"
)

// errLeft: a group has ended before the others met it.
var errLeft = errors.New("a group does not measure any more")

// meeting has all groups meet, time and again: the last one that comes does what
// is to be done there.
type meeting struct {
	mu     sync.Mutex
	groups int
	here   int
	left   bool
	next   *encounter
}

// encounter is one time that they meet.
type encounter struct {
	over chan struct{}
	err  error // once it is over
}

func newMeeting(groups int) *meeting {
	return &meeting{groups: groups, next: &encounter{over: make(chan struct{})}}
}

// come waits for the others, and returns what act, called once, returned.
func (m *meeting) come(act func() error) error {
	m.mu.Lock()
	now := m.next
	if m.left {
		m.mu.Unlock()
		return errLeft
	}
	m.here++
	if m.here == m.groups {
		m.here, m.next = 0, &encounter{over: make(chan struct{})}
		now.err = act()
		close(now.over)
	}
	m.mu.Unlock()
	<-now.over
	return now.err
}

// leave ends all meetings: who waits in one goes on with an error.
func (m *meeting) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.left {
		m.left, m.next.err = true, errLeft
		close(m.next.over)
	}
}
