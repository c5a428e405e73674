package pki

import "time"

// Until returns when the certificate in use cannot be used any more: when it, or
// what it rests upon, expires. Files that have changed count.
func (s *Source) Until() time.Time { return s.current().until }

// ListsDue returns when the first revocation list in use is to be followed by another one;
// zero: there is none, or none says so.
func (s *Source) ListsDue() time.Time { return s.current().revoked.due() }
