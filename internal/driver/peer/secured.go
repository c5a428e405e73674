package peer

import "crypto/tls"

// secured is a connection of an exclusive class under TLS.
type secured struct {
	*tls.Conn
	seal   *seal
	eager  *eager // nil: not on this kind of connection
	isMore bool   // TLS may hold what it has read
}

func newSecured(conn *tls.Conn, s *seal) *secured {
	return &secured{Conn: conn, seal: s, eager: newEager(s.Conn, s.room, s.rest)}
}

// Read implements net.Conn.
func (c *secured) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.isMore = n == len(b)
	return n, err
}

// wait waits until there is ciphertext, without memory to read it into.
func (c *secured) wait() error {
	s := c.seal
	if c.isMore || !s.between() || s.from != s.to || len(s.early) > 0 {
		return nil
	}
	n, err := c.eager.read()
	if err != nil {
		s.rest()
		return err
	}
	s.from, s.to = 0, n
	return nil
}

// aloneMost are the most bytes that TLS makes one record of. The other side keeps memory
// for the longest record that has come as long as the connection stands.
const aloneMost = 5 << 10

// Write implements net.Conn.
func (c *secured) Write(b []byte) (n int, err error) {
	for {
		k, err := c.Conn.Write(b[n:min(len(b), n+aloneMost)])
		if n += k; err != nil || n == len(b) {
			return n, err
		}
	}
}
