package gauge

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Gauge measures another process.
type Gauge struct {
	conn io.ReadWriteCloser
	in   *bufio.Reader
}

// Dial returns the gauge of the process that serves the other side of conn,
// which it owns.
func Dial(conn io.ReadWriteCloser) *Gauge { return &Gauge{conn, bufio.NewReader(conn)} }

// Open begins a window, and a profile of the processor in the file at path,
// unless that is empty.
func (g *Gauge) Open(path string) error {
	line := wordOpen
	if path != "" {
		line += " " + path
	}
	_, err := g.ask(line)
	return err
}

// Shut ends the window, and returns what was done in it.
func (g *Gauge) Shut() (Reading, error) {
	r, err := g.ask(wordClose)
	if err != nil {
		return Reading{}, err
	}
	if r.Reading == nil {
		return Reading{}, fmt.Errorf("%w: an answer without a reading", ErrTalk)
	}
	return *r.Reading, nil
}

func (g *Gauge) ask(line string) (r reply, err error) {
	if _, err := fmt.Fprintln(g.conn, line); err != nil {
		return r, fmt.Errorf("gauge: %w", err)
	}
	answer, err := g.in.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("gauge: %w", err)
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrTalk, err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("gauge: the process says: %w", errors.New(r.Error))
	}
	return r, nil
}

// Close ends the talk.
func (g *Gauge) Close() error { return g.conn.Close() }
