package collective

import (
	"container/heap"

	"github.com/tributary-fabric/tributary/internal/core"
)

// What a timer is for.
type timerKind uint8

const (
	childDue timerKind = iota // the reply of a child of a request
	replyDue                  // the service's reply to a request
	retryDue                  // a message that could not be sent
)

// timer is one moment; those that mean nothing any more are skipped then.
type timer struct {
	at    core.Time
	kind  timerKind
	id    uint64 // of a request, or the number of a send
	child int
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }

func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

func (t *timers) set(x timer) { heap.Push(t, x) }

// next takes a timer that is due.
func (t *timers) next(now core.Time) (timer, bool) {
	if len(*t) == 0 || (*t)[0].at > now {
		return timer{}, false
	}
	return heap.Pop(t).(timer), true
}

func (t timers) deadline() core.Time {
	if len(t) == 0 {
		return core.Never
	}
	return t[0].at
}
