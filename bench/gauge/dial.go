package gauge

import (
	"fmt"
	"io"
	"strings"

	"github.com/tributary-fabric/tributary/bench/talk"
)

// Gauge measures another process.
type Gauge struct {
	conn io.Closer
	line talk.Line
}

// Dial returns the gauge of the process that serves the other side of conn,
// which it owns.
func Dial(conn io.ReadWriteCloser) *Gauge { return &Gauge{conn, talk.New(conn, conn)} }

// Open begins a window, and a profile of the processor in the file at path,
// unless that is empty.
func (g *Gauge) Open(path string) error {
	return g.ask(nil, strings.TrimSpace(wordOpen+" "+path))
}

// Shut ends the window, and returns what was done in it.
func (g *Gauge) Shut() (r Reading, err error) {
	err = g.ask(&r, wordClose)
	return r, err
}

func (g *Gauge) ask(value any, line string) error {
	if err := g.line.Ask(value, line); err != nil {
		return fmt.Errorf("gauge: %w", err)
	}
	return nil
}

// Close ends the talk.
func (g *Gauge) Close() error { return g.conn.Close() }
