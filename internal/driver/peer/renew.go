package peer

import (
	"errors"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// errCertificate and errKey are why connections are replaced.
var (
	errCertificate = errors.New("the certificate by which it was made ends soon")
	errKey         = errors.New("as much as may be was encrypted by its key")
)

// keyMost are the bytes that are encrypted by one key: 2^24 full records of AES-GCM, as RFC
// 8446, section 5.5, has it. crypto/tls changes no keys.
const keyMost = 1 << 38

// follow has a path end with the other side's certificate, and be replaced before this
// host's ends.
func (p *Path) follow() {
	release := p.shown.Follow(p.tls.ConnectionState(), p.raw.RemoteAddr().String(), p.close, func() { p.renew(errCertificate) })
	p.unfollow.Store(&release)
	if p.reason.Load() != nil {
		release()
	}
}

// renew has the connection be replaced by a new one. It does not wait.
func (p *Path) renew(why error) {
	p.host.add(peering.Input{Kind: peering.Renew, ID: p.id, Err: why})
}
