package gauge

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
)

// The talk: who measures sends a line, "open", "open PROFILE" or "close", and
// gets one: JSON of a reply.
const (
	wordOpen  = "open"
	wordClose = "close"
)

// ErrTalk: the two sides of a gauge do not understand each other.
var ErrTalk = errors.New("gauge: unexpected words")

// reply answers open, without a Reading, and close.
type reply struct {
	Reading *Reading `json:"reading,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Serve answers for this process until the other side has gone. Traffic returns
// what the process has counted so far.
func Serve(conn io.ReadWriter, traffic func() (Traffic, error)) error {
	s := server{traffic: traffic}
	defer s.endProfile()
	lines := bufio.NewScanner(conn)
	to := json.NewEncoder(conn)
	for lines.Scan() {
		var r reply
		if err := s.obey(lines.Text(), &r); err != nil {
			r.Error = err.Error()
		}
		if err := to.Encode(r); err != nil {
			return fmt.Errorf("gauge: answering: %w", err)
		}
	}
	return lines.Err()
}

// server is a process that is measured.
type server struct {
	traffic func() (Traffic, error)
	since   Reading
	profile *os.File
}

func (s *server) obey(line string, r *reply) (err error) {
	word, path, _ := strings.Cut(line, " ")
	switch word {
	case wordOpen:
		if path != "" {
			if err := s.beginProfile(path); err != nil {
				return err
			}
		}
		// What takes most to find out comes first, and so is not counted.
		if s.since.Traffic, err = s.traffic(); err != nil {
			return err
		}
		s.since.read()
		return nil
	case wordClose:
		var now Reading
		now.read()
		if now.Traffic, err = s.traffic(); err != nil {
			return err
		}
		now = now.since(s.since)
		r.Reading = &now
		return s.endProfile()
	}
	return fmt.Errorf("%w: %q", ErrTalk, line)
}

// read fills in all but the traffic.
func (r *Reading) read() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m) // exact, unlike runtime/metrics, which leaves out what threads have not handed in
	r.Allocations, r.AllocatedBytes, r.Collections = m.Mallocs, m.TotalAlloc, uint64(m.NumGC)
	r.User, r.System = Usage()
}

func (s *server) beginProfile(path string) (err error) {
	if err := s.endProfile(); err != nil {
		return err
	}
	if s.profile, err = os.Create(path); err != nil {
		return fmt.Errorf("gauge: a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(s.profile); err != nil {
		return errors.Join(fmt.Errorf("gauge: a profile: %w", err), s.endProfile())
	}
	return nil
}

func (s *server) endProfile() error {
	if s.profile == nil {
		return nil
	}
	pprof.StopCPUProfile()
	err := s.profile.Close()
	s.profile = nil
	return err
}
