package field

import (
	"errors"
	"sync"
	"testing"
)

// TestMeeting has three groups meet many times: each time one acts, before any
// goes on.
func TestMeeting(t *testing.T) {
	const groups, times = 3, 200
	m := newMeeting(groups)
	acted := 0 // in the meetings alone
	odd := errors.New("odd")
	var all sync.WaitGroup
	for range groups {
		all.Go(func() {
			for n := 1; n <= times; n++ {
				err := m.come(func() error {
					acted++
					if acted%2 == 1 {
						return odd
					}
					return nil
				})
				if errors.Is(err, odd) != (n%2 == 1) {
					t.Errorf("meeting %d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
	if acted != times {
		t.Errorf("%d acts in %d meetings", acted, times)
	}
}

// TestMeetingIsLeft has one of two groups leave while the other may wait.
func TestMeetingIsLeft(t *testing.T) {
	m := newMeeting(2)
	came := make(chan error)
	go func() { came <- m.come(func() error { return nil }) }()
	m.leave()
	m.leave()
	if err := <-came; !errors.Is(err, errLeft) {
		t.Errorf("%v", err)
	}
	if err := m.come(func() error { return nil }); !errors.Is(err, errLeft) {
		t.Errorf("afterwards: %v", err)
	}
}
