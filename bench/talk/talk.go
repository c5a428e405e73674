// Package talk lets one process control another by lines of text and JSON.
package talk

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Err is wrapped by the errors of the other side, and of talks with it.
var Err = errors.New("the other process")

// answer is the line with which a process answers.
type answer struct {
	Error string          `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Serve obeys the lines of in until it ends: do does what a word orders, and returns
// what is to be answered.
func Serve(in io.Reader, out io.Writer, do func(word, arguments string) (any, error)) error {
	to, lines := json.NewEncoder(out), bufio.NewScanner(in)
	for lines.Scan() {
		word, arguments, _ := strings.Cut(lines.Text(), " ")
		var a answer
		value, err := do(word, arguments)
		if err == nil {
			a.Value, err = json.Marshal(value)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := to.Encode(a); err != nil {
			return fmt.Errorf("talk: answering: %w", err)
		}
	}
	return lines.Err()
}

// Line is the side that orders.
type Line struct {
	to   io.Writer
	from *bufio.Reader
}

// New returns the line to the process that serves to and from.
func New(to io.Writer, from io.Reader) Line { return Line{to, bufio.NewReader(from)} }

// Ask sends words, and reads the answer, if there is to be one, into value.
func (l Line) Ask(value any, words ...string) error {
	if _, err := fmt.Fprintln(l.to, strings.Join(words, " ")); err != nil {
		return fmt.Errorf("%w: %w", Err, err)
	}
	text, err := l.from.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%w has ended: %w", Err, err)
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("%w: %w", Err, err)
	}
	if a.Error != "" {
		return fmt.Errorf("%w says: %s", Err, a.Error)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(a.Value, value); err != nil {
		return fmt.Errorf("%w answers with something else: %w", Err, err)
	}
	return nil
}
