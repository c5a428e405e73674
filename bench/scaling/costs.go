package scaling

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Cost is the processor time of work, in nanoseconds: of a call, and for each packet and byte
// in it.
type Cost struct {
	Call   float64 `json:"call"`
	Packet float64 `json:"packet"`
	Byte   float64 `json:"byte"`
}

// of returns the time of one call with so many packets and bytes.
func (c Cost) of(packets, bytes int) time.Duration {
	return time.Duration(c.Call + c.Packet*float64(packets) + c.Byte*float64(bytes))
}

// Costs are what a host, or a switch in software, spends its processor on. A batch is
// packets of one destination that a system call sends, and another receives, as one.
type Costs struct {
	Taken string `json:"taken"` // when, and on what

	Send      Cost    `json:"send"`      // of a batch, with the way through a veth pair to the receiver's socket
	Receive   Cost    `json:"receive"`   // of a batch that is there
	Look      float64 `json:"look"`      // ns: sched_yield to another process and back, and a receive that finds nothing
	Alone     float64 `json:"alone"`     // ns: a look where no other process waits for the processor
	Wake      float64 `json:"wake"`      // ns: from a packet for a process that sleeps until that runs
	Cold      float64 `json:"cold"`      // ns: what a packet's receipt and sending cost more when the caches hold something else
	Aggregate Cost    `json:"aggregate"` // of a step of switchreduce.Core, by packets that come
	Session   Cost    `json:"session"`   // of a step of session.Session, by results that come and contributions that go
	Reduce    float64 `json:"reduce"`    // ns for each byte that a host adds to a vector
}

// half returns what is left of a look, on average, when something comes for who looks alone.
func (c *Costs) half() time.Duration { return time.Duration(c.Alone / 2) }

// adding returns how long a host adds so many bytes to a vector.
func (c *Costs) adding(bytes int) time.Duration { return time.Duration(float64(bytes) * c.Reduce) }

// numbers returns all that is measured.
func (c *Costs) numbers() (all []*float64) {
	for _, part := range []*Cost{&c.Send, &c.Receive, &c.Aggregate, &c.Session} {
		all = append(all, &part.Call, &part.Packet, &part.Byte)
	}
	return append(all, &c.Look, &c.Alone, &c.Wake, &c.Cold, &c.Reduce)
}

// Validate reports what is wrong with c.
func (c Costs) Validate() error {
	for _, x := range c.numbers() {
		if !(*x >= 0) || math.IsInf(*x, 1) { // NaN neither
			return fmt.Errorf("%w: a cost of %v ns", ErrModel, *x)
		}
	}
	if c.Send.Call == 0 || c.Receive.Call == 0 || c.Look == 0 || c.Alone == 0 {
		return fmt.Errorf("%w: a batch that is sent or received, or a look, costs nothing", ErrModel)
	}
	return nil
}

// middle returns the median of each cost.
func middle(all []Costs) (c Costs) {
	for i, to := range c.numbers() {
		values := make([]float64, len(all))
		for j := range all {
			values[j] = *all[j].numbers()[i]
		}
		slices.Sort(values)
		*to = values[len(values)/2]
	}
	return c
}

//go:embed measured.json
var measuredText []byte

var measured = sync.OnceValue(func() Costs {
	c, err := ReadCosts(measuredText)
	if err != nil {
		panic(err) // a test reads it
	}
	return c
})

// Measured returns what Measure found on the machine of docs/scaling.md.
func Measured() Costs { return measured() }

// ReadCosts reads costs as collbench scaling measure writes them.
func ReadCosts(text []byte) (c Costs, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%w: no costs as collbench scaling measure writes them: %w", ErrModel, err)
	}
	return c, c.Validate()
}

// Bypass returns stated costs of hosts with a network card that user space drives and that does the protocol, so that
// messages cost the processor nothing for each byte, and the member's core nothing: 150 ns to post a message and 150 ns to
// take one, 50 ns to look for one. With the cards and cable of Hardware, 0.6 us pass between two hosts that a cable joins, which is
// what such cards are sold with. They are no measurement.
func Bypass() Costs {
	return Costs{
		Taken: "stated",
		Send:  Cost{Call: 150}, Receive: Cost{Call: 150},
		Look: 50, Alone: 50,
		Reduce: Measured().Reduce,
	}
}
