package rails

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// What a pair can be asked for.
const (
	pingpong = "pingpong"
	stream   = "stream"
	losing   = "losing"
)

// Request is what both ends of a pair are asked to do.
type Request struct {
	What       string        `json:"what"`
	Bytes      int           `json:"bytes"`      // of a message
	Warmup     int           `json:"warmup"`     // of a pingpong: round trips before those that are timed
	Iterations int           `json:"iterations"` // round trips, or messages of a stream
	Lasting    time.Duration `json:"lasting"`    // of a stream, without Iterations
	Window     int           `json:"window"`     // of a stream: messages under way at once
	Start      int64         `json:"start"`      // time 0 of a stream, in ns since 1970
	Rails      string        `json:"rails"`      // names, of losing: what errors must have
	Limit      time.Duration `json:"limit"`      // after which it fails
}

// Reply is what an end has to say afterwards.
type Reply struct {
	Error string `json:"error,omitempty"`
	// Of the asker's pingpong: half of each round trip, and whether the first and the last
	// message came back as they were sent.
	Times []time.Duration `json:"times,omitempty"`
	Right bool            `json:"right"`
	Sent  uint64          `json:"sent"`  // messages of a stream, by the asker
	Begun time.Duration   `json:"begun"` // when it began the first, after Start
	// Of losing: how many requests have failed, and why one did.
	Failed int    `json:"failed"`
	Why    string `json:"why,omitempty"`
	// Of the answerer's stream.
	Ledger *Ledger `json:"ledger,omitempty"`
	Meter  *Meter  `json:"meter,omitempty"`
}

// ready is the line that says that an end can be called.
var ready = []byte("{\"ready\":true}\n")

// Play is the process of an end: it opens a port, and does what lines on in ask for until
// in is closed. Its answers are lines on out.
func Play(ctx context.Context, in io.Reader, out io.Writer, side int, open func(ready func() error) (Port, error)) (err error) {
	port, err := open(func() error {
		_, err := out.Write(ready)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, port.Close()) }()
	requests := json.NewDecoder(in)
	answers := json.NewEncoder(out)
	for {
		var r Request
		switch err := requests.Decode(&r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("a request: %w", err)
		}
		if err := answers.Encode(answer(ctx, port, side, r)); err != nil {
			return fmt.Errorf("an answer: %w", err)
		}
	}
}

// answer does what a request asks for.
func answer(ctx context.Context, port Port, side int, r Request) (reply Reply) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limit, fmt.Errorf("it was not done within %v", r.Limit))
	defer cancel()
	defer bounded(ctx, port)()
	var err error
	reducing, isReduce := port.(*reducePort)
	switch {
	case r.Bytes < 1 || r.What == stream && r.Bytes < MinMessage || r.Window < 1 || r.Limit <= 0:
		err = fmt.Errorf("messages of %d bytes, a window of %d, a limit of %v", r.Bytes, r.Window, r.Limit)
	case r.What == pingpong && isReduce:
		err = reducing.run(ctx, r, &reply)
	case r.What == losing:
		err = lose(ctx, port, r, &reply)
	case r.What == pingpong && side == Asker:
		err = ask(ctx, port, r, &reply)
	case r.What == pingpong:
		err = echo(ctx, port, r)
	case r.What == stream && side == Asker:
		err = pour(ctx, port, r, &reply)
	case r.What == stream:
		err = drain(ctx, port, r, &reply)
	default:
		err = fmt.Errorf("unknown request %q", r.What)
	}
	if err != nil {
		reply.Error = err.Error()
		if why := context.Cause(ctx); why != nil {
			reply.Error = why.Error() + ": " + reply.Error
		}
	}
	return reply
}

// ask times round trips.
func ask(ctx context.Context, port Port, r Request, reply *Reply) error {
	var out []byte
	in := make([]byte, r.Bytes)
	trip := func() error {
		if err := port.Send(ctx, out); err != nil {
			return err
		}
		_, err := port.Recv(ctx, in)
		return err
	}
	reply.Right = true
	check := func(n uint64) error {
		out = make([]byte, r.Bytes)
		fill(out, n, false)
		if err := trip(); err != nil {
			return err
		}
		reply.Right = reply.Right && bytes.Equal(in, out)
		return nil
	}
	if err := check(1); err != nil {
		return err
	}
	for range r.Warmup {
		if err := trip(); err != nil {
			return err
		}
	}
	reply.Times = make([]time.Duration, r.Iterations)
	for i := range reply.Times {
		begun := time.Now()
		if err := trip(); err != nil {
			return err
		}
		reply.Times[i] = time.Since(begun) / 2
	}
	return check(2)
}

// echo sends back what it receives.
func echo(ctx context.Context, port Port, r Request) error {
	memory := [2][]byte{make([]byte, r.Bytes), make([]byte, r.Bytes)}
	for i := range 1 + r.Warmup + r.Iterations + 1 {
		b := memory[i%2]
		n, err := port.Recv(ctx, b)
		if err == nil {
			err = port.Send(ctx, b[:n])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// buffers returns the memory of a window.
func buffers(r Request) [][]byte {
	all := make([][]byte, r.Window)
	for i := range all {
		all[i] = make([]byte, r.Bytes)
	}
	return all
}

// pour sends a stream of messages.
func pour(ctx context.Context, port Port, r Request, reply *Reply) error {
	window, under := buffers(r), make([]Pending, r.Window)
	start := time.Unix(0, r.Start)
	reply.Begun = time.Since(start)
	for last := false; !last; reply.Sent++ {
		i := reply.Sent % uint64(r.Window)
		if under[i] != nil {
			if _, err := under[i].Wait(ctx); err != nil {
				return err
			}
		}
		if last = reply.Sent+1 == uint64(r.Iterations); r.Iterations == 0 {
			last = time.Since(start) >= r.Lasting
		}
		fill(window[i], reply.Sent, last)
		under[i] = port.StartSend(window[i])
	}
	for _, p := range under {
		if p != nil {
			if _, err := p.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain receives a stream of messages until the last one.
func drain(ctx context.Context, port Port, r Request, reply *Reply) error {
	reply.Ledger, reply.Meter = &Ledger{}, &Meter{}
	window, under := buffers(r), make([]Pending, r.Window)
	start := time.Unix(0, r.Start)
	for i := range under {
		under[i] = port.StartRecv(window[i])
	}
	defer func() {
		for _, p := range under {
			p.Cancel()
		}
	}()
	for i := 0; ; i = (i + 1) % r.Window {
		n, err := under[i].Wait(ctx)
		if err != nil {
			return err
		}
		reply.Meter.Add(time.Since(start), n)
		if reply.Ledger.Add(window[i][:n]) {
			return nil
		}
		under[i] = port.StartRecv(window[i])
	}
}
