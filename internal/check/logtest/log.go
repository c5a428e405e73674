// Package logtest has a log for tests to read.
package logtest

import (
	"bytes"
	"context"
	"strings"
	"sync"
)

// Log is what was written to a log. Its zero value is an empty one. It may be used from several goroutines.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed by the next Write; nil: nobody waits for that
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return l.text.Write(b)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Await waits until a text was written, and reports whether it was before ctx ended.
func (l *Log) Await(ctx context.Context, text string) bool {
	for {
		l.mu.Lock()
		has := strings.Contains(l.text.String(), text)
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if has {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}
