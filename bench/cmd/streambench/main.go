// Command streambench compares a stream over UDP (internal/driver/udp) with a TCP connection,
// with TLS 1.3 over either:
//
//	streambench serve -listen 10.0.0.2:7000
//	streambench call -to 10.0.0.2:7000 -kind udp,tcp -bytes 67108864 -trips 2000 -repeat 5
//
// It alternates between the kinds, and prints a line for each measurement: megabits a
// second, the median and 99th percentile of round trips of 8 bytes, and the processor time
// of both sides, in milliseconds, for a gigabyte or a thousand round trips.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/driver/udp"
)

type options struct {
	listen, to, kinds, without string
	bytes                      uint64
	trips, repeat              int
	loss                       float64
	plain, stats               bool
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var o options
	f := flag.NewFlagSet("streambench", flag.ContinueOnError)
	f.StringVar(&o.listen, "listen", "127.0.0.1:7000", "address of the server, of TCP and of UDP")
	f.StringVar(&o.to, "to", "127.0.0.1:7000", "address to call")
	f.StringVar(&o.kinds, "kind", "udp,tcp", "kinds of streams, in turn")
	f.Uint64Var(&o.bytes, "bytes", 64<<20, "bytes of a transfer; 0: none")
	f.IntVar(&o.trips, "trips", 2000, "round trips of 8 bytes; 0: none")
	f.IntVar(&o.repeat, "repeat", 5, "measurements of each kind")
	f.Float64Var(&o.loss, "loss", 0, "probability that a datagram of UDP is lost, in each direction")
	f.StringVar(&o.without, "without", "", "features that the UDP socket does without")
	f.BoolVar(&o.plain, "plain", false, "without TLS")
	f.BoolVar(&o.stats, "stats", false, "print what the UDP connection counts")
	if len(args) == 0 {
		return errors.New("streambench: serve or call")
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == "serve" {
		return o.serve()
	}
	return o.call()
}

func (o *options) config() (udp.Config, error) {
	without, err := transport.ParseFeatures(o.without)
	c := udp.Config{Connection: rudp.Config{}, Without: without}
	if o.loss > 0 {
		c.Wrap = func(t transport.Conn) transport.Conn {
			f, err := transport.WithFaults(t, transport.Faults{Loss: o.loss, Seed: uint64(time.Now().UnixNano())})
			if err != nil {
				panic(err)
			}
			return f
		}
	}
	return c, err
}

// certificate returns one that nobody has signed.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func (o *options) serve() error {
	cert, err := certificate()
	if err != nil {
		return err
	}
	cfg, err := o.config()
	if err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(o.listen)
	if err != nil {
		return err
	}
	u, err := udp.Listen(at, cfg)
	if err != nil {
		return err
	}
	t, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	for _, l := range []net.Listener{u, t} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					failed <- err
					return
				}
				if !o.plain {
					c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, DynamicRecordSizingDisabled: true})
				}
				go answer(c)
			}
		}()
	}
	return <-failed
}

// answer serves what a caller asks: a number of bytes to take, or of round trips.
func answer(c net.Conn) {
	defer c.Close()
	var head [16]byte
	room := make([]byte, 64<<10)
	for {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		begin := processor()
		n := binary.BigEndian.Uint64(head[8:])
		for i := uint64(0); i < n; {
			if head[0] == 't' {
				if _, err := io.ReadFull(c, room[:8]); err != nil {
					return
				}
				if _, err := c.Write(room[:8]); err != nil {
					return
				}
				i++
				continue
			}
			k, err := c.Read(room[:min(uint64(len(room)), n-i)])
			if err != nil {
				return
			}
			i += uint64(k)
		}
		binary.BigEndian.PutUint64(head[:], uint64(processor()-begin))
		if _, err := c.Write(head[:8]); err != nil {
			return
		}
	}
}

// processor returns the time that this process has had a processor.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (o *options) call() error {
	kinds := strings.Split(o.kinds, ",")
	conns := make([]net.Conn, len(kinds))
	raws := make([]net.Conn, len(kinds))
	for i, kind := range kinds {
		raw, err := o.dial(kind)
		if err != nil {
			return err
		}
		raws[i], conns[i] = raw, raw
		if !o.plain {
			conns[i] = tls.Client(raw, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true}) //nolint:gosec // it measures
		}
		defer conns[i].Close()
	}
	for range o.repeat {
		for i, kind := range kinds {
			if o.bytes > 0 {
				if err := o.transfer(kind, conns[i]); err != nil {
					return err
				}
				if c, ok := raws[i].(*udp.Conn); ok && o.stats {
					fmt.Printf("%+v\n", c.Stats())
				}
			}
			if o.trips > 0 {
				if err := o.pingpong(kind, conns[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (o *options) dial(kind string) (net.Conn, error) {
	if kind == "tcp" {
		return net.Dial("tcp", o.to)
	}
	to, err := netip.ParseAddrPort(o.to)
	if err != nil {
		return nil, err
	}
	cfg, err := o.config()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	any4 := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	return udp.Dial(ctx, any4, to, cfg)
}

// ask sends a request and runs f, and returns how long that and the answer took, and the
// processor time of both sides.
func ask(c net.Conn, what byte, n uint64, f func() error) (took, cpu time.Duration, err error) {
	begin, mine := time.Now(), processor()
	var head [16]byte
	head[0] = what
	binary.BigEndian.PutUint64(head[8:], n)
	if _, err := c.Write(head[:]); err != nil {
		return 0, 0, err
	}
	if err := f(); err != nil {
		return 0, 0, err
	}
	if _, err := io.ReadFull(c, head[:8]); err != nil {
		return 0, 0, err
	}
	return time.Since(begin), processor() - mine + time.Duration(binary.BigEndian.Uint64(head[:])), nil
}

func (o *options) transfer(kind string, c net.Conn) error {
	room := make([]byte, 256<<10)
	took, cpu, err := ask(c, 'b', o.bytes, func() error {
		for left := o.bytes; left > 0; {
			n, err := c.Write(room[:min(left, uint64(len(room)))])
			if err != nil {
				return err
			}
			left -= uint64(n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s bytes=%d mbit/s=%.1f cpu-ms/GB=%.0f\n", kind, o.bytes, float64(o.bytes)*8/took.Seconds()/1e6, cpu.Seconds()*1e3/(float64(o.bytes)/1e9))
	return nil
}

func (o *options) pingpong(kind string, c net.Conn) error {
	times := make([]time.Duration, o.trips)
	var room [8]byte
	_, cpu, err := ask(c, 't', uint64(o.trips), func() error {
		for i := range times {
			begin := time.Now()
			if _, err := c.Write(room[:]); err != nil {
				return err
			}
			if _, err := io.ReadFull(c, room[:]); err != nil {
				return err
			}
			times[i] = time.Since(begin)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(times)
	fmt.Printf("%s trips=%d median-us=%.1f p99-us=%.1f cpu-ms/1000=%.1f\n", kind, o.trips,
		float64(times[len(times)/2].Nanoseconds())/1e3, float64(times[len(times)*99/100].Nanoseconds())/1e3, cpu.Seconds()*1e6/float64(o.trips))
	return nil
}
