package gauge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/tributary-fabric/tributary/bench/talk"
)

// The talk: who measures sends a line, "open", "open PROFILE" or "close", and
// gets a Reading for the latter.
const (
	wordOpen  = "open"
	wordClose = "close"
)

// Serve answers for this process until the other side has gone. Traffic returns
// what the process has counted so far.
func Serve(conn io.ReadWriter, traffic func() (Traffic, error)) error {
	s := server{traffic: traffic}
	defer s.endProfile()
	return talk.Serve(conn, conn, s.obey)
}

// server is a process that is measured.
type server struct {
	traffic func() (Traffic, error)
	since   Reading
	profile *os.File
}

func (s *server) obey(word, path string) (_ any, err error) {
	switch word {
	case wordOpen:
		if path != "" {
			if err := s.beginProfile(path); err != nil {
				return nil, err
			}
		}
		// What takes most to find out comes first, and so is not counted.
		if s.since.Traffic, err = s.traffic(); err != nil {
			return nil, err
		}
		s.since.read()
		return nil, nil
	case wordClose:
		var now Reading
		now.read()
		if now.Traffic, err = s.traffic(); err != nil {
			return nil, err
		}
		return now.since(s.since), s.endProfile()
	}
	return nil, fmt.Errorf("unknown word %q", word)
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
