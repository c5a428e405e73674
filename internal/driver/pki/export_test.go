package pki

import "time"

// SetClock sets the clock of s, before it is used.
func (s *Source) SetClock(now func() time.Time) { s.now = now }
