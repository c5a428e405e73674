package rail

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// BenchmarkPingPong is a message there and back, beside one over a plain TCP connection.
func BenchmarkPingPong(b *testing.B) {
	for _, isTLS := range []bool{false, true} {
		for _, size := range []int{8, 64 << 10} {
			b.Run(fmt.Sprintf("tls=%v/size=%d/rails=plain", isTLS, size), func(b *testing.B) {
				one, other := plainPair(b, isTLS)
				data, got := make([]byte, size), make([]byte, size)
				go func() {
					back := make([]byte, size)
					for {
						if _, err := io.ReadFull(other, back); err != nil {
							return
						}
						_, _ = other.Write(back)
					}
				}()
				b.ReportAllocs()
				for b.Loop() {
					if _, err := one.Write(data); err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(one, got); err != nil {
						b.Fatal(err)
					}
				}
			})
			for _, rails := range []int{1, 2} {
				b.Run(fmt.Sprintf("tls=%v/size=%d/rails=%d", isTLS, size, rails), func(b *testing.B) {
					s := newSite(b, wiringOf(rails, isTLS), Config{})
					s.whole()
					one, other := s.peers[0], s.peers[1]
					ctx := context.Background()
					data, got := make([]byte, size), make([]byte, size)
					var answers sync.WaitGroup
					answers.Go(func() {
						back := make([]byte, size)
						for other.isPong(ctx, back) {
						}
					})
					b.ReportAllocs()
					for b.Loop() {
						r := one.StartRecv(2, got)
						if err := one.Send(ctx, 1, data); err != nil {
							b.Fatal(err)
						}
						if _, err := r.Wait(ctx); err != nil {
							b.Fatal(err)
						}
					}
					b.StopTimer()
					_ = one.Send(ctx, 1, nil)
					answers.Wait()
				})
			}
		}
	}
}

// isPong answers a message, and reports false if that was empty.
func (p *Peer) isPong(ctx context.Context, back []byte) bool {
	s, err := p.Recv(ctx, 1, back)
	if err != nil || s.Size == 0 {
		return false
	}
	return p.Send(ctx, 2, back) == nil
}

func wiringOf(rails int, isTLS bool) wiring {
	if rails == 1 {
		return wiring{same(tcp), isTLS}
	}
	return wiring{same(tcp, tcp), isTLS}
}

// BenchmarkBandwidth sends large messages, two under way at once.
func BenchmarkBandwidth(b *testing.B) {
	const size = 16 << 20
	for _, isTLS := range []bool{false, true} {
		b.Run(fmt.Sprintf("tls=%v/rails=plain", isTLS), func(b *testing.B) {
			one, other := plainPair(b, isTLS)
			data, back := make([]byte, size), make([]byte, size)
			go func() {
				for {
					if _, err := one.Write(data); err != nil {
						return
					}
				}
			}()
			b.SetBytes(size)
			for b.Loop() {
				if _, err := io.ReadFull(other, back); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, rails := range []int{1, 2} {
			b.Run(fmt.Sprintf("tls=%v/rails=%d", isTLS, rails), func(b *testing.B) {
				s := newSite(b, wiringOf(rails, isTLS), Config{})
				s.whole()
				one, other := s.peers[0], s.peers[1]
				ctx := context.Background()
				data := make([]byte, size)
				var into [2][]byte
				for i := range into {
					into[i] = make([]byte, size)
				}
				b.SetBytes(size)
				b.ReportAllocs()
				var under [2][2]*Request
				n := 0
				for b.Loop() {
					i := n % 2
					for _, r := range under[i] {
						if r == nil {
							continue
						}
						if _, err := r.Wait(ctx); err != nil {
							b.Fatal(err)
						}
					}
					under[i] = [2]*Request{other.StartRecv(1, into[i]), one.StartSend(1, data)}
					n++
				}
				for _, pair := range under {
					for _, r := range pair {
						if r != nil {
							_, _ = r.Wait(ctx)
						}
					}
				}
			})
		}
	}
}

// plainPair returns both ends of a TCP connection.
func plainPair(b *testing.B, isTLS bool) (one, other net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if one, err = net.Dial("tcp", l.Addr().String()); err != nil {
		b.Fatal(err)
	}
	if other, err = l.Accept(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { one.Close(); other.Close() })
	if !isTLS {
		return one, other
	}
	files := trusted(b)
	var sources [2]*pki.Source
	for i, f := range files {
		if sources[i], err = pki.Load(pki.Files{Cert: f.Cert, Key: f.Key, CA: f.CA}, nil); err != nil {
			b.Fatal(err)
		}
	}
	client := tls.Client(one, sources[0].Client(pki.Want{Role: pki.Host, Name: siteNames[1]}))
	server := tls.Server(other, sources[1].Server())
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return client, server
}
