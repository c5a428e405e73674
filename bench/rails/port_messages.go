package rails

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// messageTag is that of all messages of a measurement.
const messageTag rail.Tag = 18

// messagePort carries messages of package hostlib/rail.
type messagePort struct {
	host *hostlib.Host
	node *rail.Node
	peer *rail.Peer
	sent *rail.Request // by Send, the latest
}

// OpenMessages returns an end of messages of package hostlib/rail, over all rails.
func OpenMessages(ctx context.Context, c PortConfig, ready func() error) (Port, error) {
	p := &messagePort{}
	var err error
	if p.host, err = hostlib.Join(ctx, c.hostConfig()); err != nil {
		return nil, err
	}
	if p.node, err = rail.On(p.host, rail.Config{}); err == nil {
		p.peer, err = p.node.Peer(hostName(1 - c.Side))
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, ready()
}

// hostConfig returns the configuration of this side's host.
func (c *PortConfig) hostConfig() hostlib.Config {
	return hostlib.Config{
		Name: hostName(c.Side), Listen: c.at(c.Own), Rails: hostRails(c.Own, c.Kinds, c.Port), TLS: hostTLS(c.Trust, c.Side), AllowPlaintext: c.Trust == "",
		Resolve: func(context.Context, string) (string, error) { return c.at(c.Peer), nil },
		Log:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// hostRails returns a host's rails, by their addresses.
func hostRails(addresses, kinds []string, port uint16) (all []hostlib.Rail) {
	for i, at := range addresses {
		name := netlab.RailInterface(i)
		r := hostlib.Rail{Name: name, Interface: name, Address: net.JoinHostPort(at, strconv.Itoa(int(port)))}
		if kindOf(kinds, i) == "udp" {
			r.Kind, r.Address = hostlib.RailUDP, at // any port: membership's datagrams have that one
		}
		all = append(all, r)
	}
	return all
}

// hostTLS returns the certificate of a host out of a directory, nil without one.
func hostTLS(trust string, host int) *hostlib.TLS {
	if trust == "" {
		return nil
	}
	id := identity(host)
	file := func(name string) string { return filepath.Join(trust, name) }
	return &hostlib.TLS{Cert: file(pki.CertFile(id)), Key: file(pki.KeyFile(id)), CA: file(pki.AuthorityFile)}
}

func (p *messagePort) Send(ctx context.Context, b []byte) error {
	if p.sent != nil {
		if _, err := p.sent.Wait(ctx); err != nil {
			return err
		}
	}
	p.sent = p.peer.StartSend(messageTag, b)
	return nil
}

func (p *messagePort) Recv(ctx context.Context, b []byte) (int, error) {
	s, err := p.peer.Recv(ctx, messageTag, b)
	return s.Size, err
}

func (p *messagePort) StartSend(b []byte) Pending { return request{p.peer.StartSend(messageTag, b)} }
func (p *messagePort) StartRecv(b []byte) Pending { return request{p.peer.StartRecv(messageTag, b)} }

func (p *messagePort) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var err error
	if p.node != nil {
		err = p.node.Close(ctx)
	}
	return errors.Join(err, p.host.Close(ctx))
}

// request is a message of package hostlib/rail under way.
type request struct{ *rail.Request }

func (r request) Wait(ctx context.Context) (int, error) {
	s, err := r.Request.Wait(ctx)
	return s.Size, err
}
