package audit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// The outcomes.
const (
	Done      = "done"
	Denied    = "denied"    // the caller may not do that
	Quota     = "quota"     // a quota refused it
	Cancelled = "cancelled" // the caller has gone
	Failed    = "failed"
)

// Record is what somebody has done, or tried to do. What is empty is not written.
type Record struct {
	Request string // its id, which no other request of any process has
	Role    string // of the caller, by its certificate
	Name    string // likewise
	Address string // of the other side, "host:port"
	Method  string
	Group   uint32
	Object  string // the group's name, the switch, the file
	Detail  string // the other key fields, "key=value" each
	Outcome string
	Err     error // why it is not done
}

// mode of the file: names and addresses are not for everybody.
const mode = 0o600

// Log is a file of records. It is safe for concurrent use; a nil Log writes nothing.
type Log struct {
	path   string
	mu     sync.Mutex
	file   *os.File
	failed atomic.Uint64
	log    *slog.Logger
}

// Open opens the file at path, which it makes or appends to.
func Open(path string) (*Log, error) {
	l := &Log{path: filepath.Clean(path)}
	l.log = slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.LevelKey {
			return slog.Attr{} // all are records
		}
		return a
	}}))
	return l, l.Reopen()
}

// Reopen goes on in the file at the path, after somebody has moved the former one away.
// Where that fails the former one stays.
func (l *Log) Reopen() error {
	if l == nil {
		return nil
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.mu.Lock()
	former := l.file
	l.file = file
	l.mu.Unlock()
	if former != nil {
		return former.Close()
	}
	return nil
}

// Close closes the file. Records after it are counted as failed.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// Write writes a line; it is for the log of Open.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.file.Write(line)
	if err != nil {
		l.failed.Add(1)
	}
	return n, err
}

// Failures returns how many records could not be written.
func (l *Log) Failures() uint64 {
	if l == nil {
		return 0
	}
	return l.failed.Load()
}

// Record writes a record.
func (l *Log) Record(r Record) {
	if l == nil {
		return
	}
	attrs := []slog.Attr{slog.String("outcome", r.Outcome)}
	for _, f := range [][2]string{
		{"request", r.Request}, {"role", r.Role}, {"name", r.Name}, {"address", r.Address}, {"object", r.Object}, {"detail", r.Detail},
	} {
		if f[1] != "" {
			attrs = append(attrs, slog.String(f[0], f[1]))
		}
	}
	if r.Group != 0 {
		attrs = append(attrs, slog.Uint64("group", uint64(r.Group)))
	}
	if r.Err != nil {
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, r.Method, attrs...) //nolint:sloglint // the message is the method
}
