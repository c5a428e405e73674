package node

import "math"

// Values of Segment.Source and Segment.Reader that name no process.
const (
	Nobody = -1
	All    = -2
)

// Segment is a piece of an operation's vector, as the processes of one host see it.
type Segment struct {
	Elements int
	Width    int  // bytes of an element
	Reduces  bool // every process has a vector
	Joins    bool // every process has a part of the vector
	Source   int  // process whose vector is copied; Nobody: none of this host, or nothing is copied
	Reader   int  // process that gets the result, All or Nobody
}

// Gives reports whether a process has a vector.
func (s *Segment) Gives(process int) bool { return s.Reduces || s.Joins || s.Source == process }

// Gets reports whether a process gets the result.
func (s *Segment) Gets(process int) bool {
	return (s.Reader == All || s.Reader == process) && s.Source != process
}

// shareBytes is the least that is divided: less costs more to hand over than to reduce.
const shareBytes = 8 << 10

// Share returns the elements that one of several processes reduces. Ranges begin at multiples
// of 64 bytes.
func (s *Segment) Share(process, processes int) (from, to int) {
	if !s.Reduces || s.Elements == 0 {
		return 0, 0
	}
	line := max(1, 64/s.Width)
	each := max((s.Elements+processes-1)/processes, shareBytes/s.Width)
	each = (each + line - 1) / line * line
	return min(process*each, s.Elements), min((process+1)*each, s.Elements)
}

// Stage is a counter.
type Stage uint8

// The counters; Finished is the leader's alone.
const (
	Copied Stage = iota
	Reduced
	Read
	Finished
	Stages int = iota
)

// Counters are what the processes have published.
type Counters interface {
	Count(s Stage, process int) uint64
}

// Kind is what to do.
type Kind uint8

// The kinds; see the package's table.
const (
	Wait Kind = iota
	Finish
	Check
	Start
	Reduce
	Copy
	Get
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"wait", "finish", "check", "start", "reduce", "copy", "get"}[k]
}

// Action is what a process is to do next.
type Action struct {
	Kind     Kind
	Segment  uint64
	From, To int // elements to reduce
}

// Publishes returns the counter that is to be the segment's number plus 1 when the action is
// done, if there is one.
func (a Action) Publishes() (s Stage, is bool) {
	switch a.Kind {
	case Finish:
		return Finished, true
	case Reduce:
		return Reduced, true
	case Copy:
		return Copied, true
	case Get:
		return Read, true
	}
	return 0, false
}

// Core is one process's. Processes are numbered from 0, which is the leader.
type Core struct {
	Processes, Own, Slots int

	own              [Stages]uint64 // what it has published; what others write over it is not believed
	checked, started uint64         // segments
}

// Next returns what the process does next. called returns a segment of an operation that the
// process has called, or nil; completed is how many segments the operation between hosts is
// done for, in order. The caller calls Done with what it has done.
func (c *Core) Next(now Counters, completed uint64, called func(uint64) *Segment) Action {
	if i := c.own[Finished]; i < min(completed, c.started) {
		return Action{Kind: Finish, Segment: i}
	}
	if i := c.checked; i < c.own[Copied] && c.least(now, Copied) > i {
		return Action{Kind: Check, Segment: i}
	}
	if i := c.started; c.Own == 0 && i < c.checked && c.isReduced(now, i, called(i)) {
		return Action{Kind: Start, Segment: i}
	}
	if i := c.own[Reduced]; i < c.checked {
		from, to := called(i).Share(c.Own, c.Processes)
		return Action{Kind: Reduce, Segment: i, From: from, To: to}
	}
	if i := c.own[Copied]; called(i) != nil && (i < uint64(c.Slots) || c.least(now, Read) > i-uint64(c.Slots)) {
		return Action{Kind: Copy, Segment: i}
	}
	if i := c.own[Read]; i < c.own[Reduced] && c.isReady(now, i, called(i)) {
		return Action{Kind: Get, Segment: i}
	}
	return Action{}
}

// Finished returns how many segments this process, if it is the leader, has finished.
func (c *Core) Finished() uint64 { return c.own[Finished] }

// Started returns for how many segments this process, if it is the leader, has begun the operation
// between hosts.
func (c *Core) Started() uint64 { return c.started }

// Done notes an action that is done, and published.
func (c *Core) Done(a Action) {
	if s, is := a.Publishes(); is {
		c.own[s] = a.Segment + 1
	}
	switch a.Kind {
	case Check:
		c.checked++
	case Start:
		c.started++
	}
}

// isReduced reports whether all shares of a segment are.
func (c *Core) isReduced(now Counters, i uint64, s *Segment) bool {
	for p := range c.Processes {
		if from, to := s.Share(p, c.Processes); from < to && now.Count(Reduced, p) <= i {
			return false
		}
	}
	return true
}

// isReady reports whether the process may take the result of a segment, or leave it.
func (c *Core) isReady(now Counters, i uint64, s *Segment) bool {
	isEarly := s.Source >= 0 || !s.Gets(c.Own)
	if c.Own == 0 {
		return c.own[Finished] > i
	}
	return isEarly || now.Count(Finished, 0) > i
}

// Wakes returns who of those that wait may go on after an action that was published: All,
// process 0, or Nobody.
func (c *Core) Wakes(now Counters, a Action, s *Segment) int {
	switch a.Kind {
	case Finish:
		return All
	case Copy:
		if c.least(now, Copied) <= a.Segment {
			return Nobody
		}
		if from, to := s.Share(1, c.Processes); from == to && s.Source < 0 && s.Reader == All {
			return 0 // the others have nothing to do before it has finished
		}
		return All
	case Reduce:
		if a.From < a.To && c.isReduced(now, a.Segment, s) {
			return 0
		}
	case Get:
		if c.isAwaited(now, a.Segment) && c.least(now, Read) > a.Segment {
			return All
		}
	}
	return Nobody
}

// isAwaited reports whether a process may wait for the slot of a segment.
func (c *Core) isAwaited(now Counters, i uint64) bool {
	for p := range c.Processes {
		if now.Count(Copied, p) == i+uint64(c.Slots) {
			return true
		}
	}
	return false
}

// least returns the least of a counter of all processes.
func (c *Core) least(now Counters, s Stage) uint64 {
	least := uint64(math.MaxUint64)
	for p := range c.Processes {
		least = min(least, now.Count(s, p))
	}
	return least
}
