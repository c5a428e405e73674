package lldp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// system returns the kernel's sockets, in the network namespace of the calling thread.
func system() sockets { return kernel{} }

type kernel struct{}

// permitted implements sockets.
func (kernel) permitted() error {
	r, err := open(0)
	if err == nil {
		r.close()
	}
	return err
}

// port implements sockets.
func (kernel) port(index int) (conn, error) {
	r, err := open(index)
	if err != nil {
		return nil, err
	}
	m := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(lldpdu.Multicast))}
	copy(m.Address[:], lldpdu.Multicast[:])
	e := r.fd.Control(func(fd uintptr) {
		err = errors.Join(
			os.NewSyscallError("setsockopt: multicast", unix.SetsockoptPacketMreq(int(fd), unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m)),
			os.NewSyscallError("setsockopt: times of arrival", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)),
		)
	})
	if err = errors.Join(e, err); err != nil {
		r.close()
		return nil, fmt.Errorf("lldp: %w", err)
	}
	return r, nil
}

// raw is a packet socket of an interface.
type raw struct {
	index   int
	packets *packet.Conn
	fd      syscall.RawConn
	oob     [64]byte
}

// open opens a socket for LLDPDUs without VLAN tag. The index 0 is that of all interfaces.
func open(index int) (*raw, error) {
	filter, err := bpf.Assemble(accepted)
	if err != nil {
		return nil, fmt.Errorf("lldp: filter: %w", err)
	}
	c, err := packet.Listen(&net.Interface{Index: index}, packet.Raw, lldpdu.EtherType, &packet.Config{Filter: filter})
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: %w", ErrPermission, err)
	case err != nil:
		return nil, fmt.Errorf("lldp: %w", err)
	}
	fd, err := c.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lldp: %w", err), c.Close())
	}
	return &raw{index: index, packets: c, fd: fd}, nil
}

// accepted is the kernel's filter behind that of the type: what is sent to LLDP's address,
// and has no VLAN tag. A tag is gone when the filter sees the frame, which is then one for
// another host.
var accepted = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtType},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_MULTICAST, SkipTrue: 5},
	bpf.LoadAbsolute{Off: 0, Size: 4},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x0180c200, SkipTrue: 3},
	bpf.LoadAbsolute{Off: 4, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x000e, SkipTrue: 1},
	bpf.RetConstant{Val: mostFrame},
	bpf.RetConstant{Val: 0},
}

// read implements conn.
func (r *raw) read(b []byte) (a arrival, err error) {
	var oob int
	over := r.fd.Read(func(fd uintptr) bool {
		a.size, oob, _, _, err = unix.Recvmsg(int(fd), b, r.oob[:], unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	switch {
	case over != nil:
		return arrival{}, net.ErrClosed
	case err != nil:
		return arrival{}, os.NewSyscallError("recvmsg", err)
	}
	a.waits = waited(r.oob[:oob])
	return a, nil
}

// waited returns how long ago a frame came, by the kernel's time of its arrival. That is a
// time of day: when it is set meanwhile, nothing is known, and the frame came now.
func waited(oob []byte) time.Duration {
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for _, m := range all {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			at := *(*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			if ago := time.Since(time.Unix(at.Unix())); ago >= 0 && ago < time.Second {
				return ago
			}
		}
	}
	return 0
}

// write implements conn.
func (r *raw) write(frame []byte) (err error) {
	if e := r.fd.Control(func(fd uintptr) { _, err = unix.SendmsgN(int(fd), frame, nil, nil, unix.MSG_DONTWAIT) }); e != nil {
		return e
	}
	return os.NewSyscallError("sendmsg", err)
}

// close implements conn.
func (r *raw) close() { _ = r.packets.Close() }

// claimed is the name of the socket that shows who takes part in LLDP on a machine. It is
// one of the network namespace, without a file.
const (
	claimed    = "@tributary-lldp"
	claimPause = 10 * time.Millisecond
)

// claim implements sockets. Who has the name neither takes nor sends anything on it: whoever
// is connected is notified of its end by the kernel.
func (kernel) claim(ctx context.Context, waiting func(pid int)) (release func(), err error) {
	for ; ctx.Err() == nil; _ = runner.Pause(ctx, claimPause) {
		l, err := net.Listen("unix", claimed)
		if err == nil {
			return func() { _ = l.Close() }, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("lldp: %w", err)
		}
		holder, err := net.Dial("unix", claimed)
		if err != nil {
			continue // it has just ended
		}
		who, err := credentials(holder)
		if err == nil && who.Uid != 0 && int(who.Uid) != os.Geteuid() {
			_ = holder.Close()
			return func() {}, nil // whoever it is, it is nobody who could keep this process from LLDP
		}
		if err == nil {
			waiting(int(who.Pid))
		}
		stop := context.AfterFunc(ctx, func() { _ = holder.Close() })
		_, _ = holder.Read(make([]byte, 1)) // whatever ends it
		stop()
		_ = holder.Close()
	}
	return nil, ctx.Err()
}

// credentials returns whose process has the other end of a Unix socket.
func credentials(c net.Conn) (who *unix.Ucred, err error) {
	fd, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	if e := fd.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return nil, e
	}
	return who, err
}
