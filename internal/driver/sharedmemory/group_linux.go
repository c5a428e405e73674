package sharedmemory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// seals are those of memory that nobody can cut off under the others.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// Group is one process's end of the memory, and of the connections to the others.
type Group struct {
	*Board
	others map[int]*net.UnixConn // by process: all, at the first; the first, at the others
	closes atomic.Bool
	tasks  sync.WaitGroup
}

// eventBells are an eventfd of each process. A goroutine that waits holds no thread.
type eventBells struct {
	all []int    // of all processes, to ring
	own *os.File // of this one; it is among all
}

func makeBells(processes int) (all []int, err error) {
	for range processes {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, fd)
	}
	return all, nil
}

func closeAll(files []int) {
	for _, fd := range files {
		_ = unix.Close(fd)
	}
}

func newBells(all []int, own int) *eventBells {
	return &eventBells{all, os.NewFile(uintptr(all[own]), "eventfd")}
}

func (b *eventBells) ring(process int) {
	one := [8]byte{1}
	_, _ = unix.Write(b.all[process], one[:]) // full, it wakes all the same
}

func (b *eventBells) wait() {
	var count [8]byte
	_, _ = b.own.Read(count[:])
}

func (b *eventBells) close(own int) {
	for p, fd := range b.all {
		if p != own {
			_ = unix.Close(fd)
		}
	}
	_ = b.own.Close()
}

// Offer is memory that the first process offers to the others.
type Offer struct {
	board    *Board
	file     int
	bells    []int
	listener *net.UnixListener
}

// MakeOffer makes the memory.
func MakeOffer(s Shape) (*Offer, error) {
	file, err := unix.MemfdCreate("tributary", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("sharedmemory: making memory: %w", err)
	}
	o := &Offer{file: file}
	if o.bells, err = makeBells(s.Processes); err == nil {
		err = unix.Ftruncate(file, int64(s.size()))
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, seals)
	}
	if err == nil {
		o.board, err = mapped(file, s, 0, nil)
	}
	if err == nil {
		o.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: "@tributary-" + rand.Text(), Net: "unix"})
	}
	if err != nil {
		o.Close()
		return nil, fmt.Errorf("sharedmemory: making memory of %d bytes: %w", s.size(), err)
	}
	return o, nil
}

func mapped(file int, s Shape, own int, b *eventBells) (*Board, error) {
	memory, err := unix.Mmap(file, 0, s.size(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &Board{Shape: s, own: own, memory: memory, bells: b}, nil
}

// Name returns what the others have to know: the name of a socket, of at most MaxName bytes.
func (o *Offer) Name() string { return o.listener.Addr().String() }

// MaxName is the length of names of offers, at most.
const MaxName = 64

// Accept returns the group when all other processes have taken the memory. After an error the
// offer is closed.
func (o *Offer) Accept(ctx context.Context) (*Group, error) {
	o.board.bells = newBells(slices.Clone(o.bells), 0)
	g := &Group{Board: o.board, others: map[int]*net.UnixConn{}}
	shut := func() { _ = o.listener.Close() }
	defer shut()
	defer context.AfterFunc(ctx, shut)()
	for len(g.others) < o.board.Processes-1 {
		conn, err := o.listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			o.board = nil
			_ = unix.Close(o.file)
			return nil, errors.Join(fmt.Errorf("sharedmemory: waiting for the host's processes: %w", err), g.Close())
		}
		process, err := o.give(ctx, conn)
		if err != nil || g.others[process] != nil {
			_ = conn.Close() // of no process of the group
			continue
		}
		g.others[process] = conn
	}
	o.board = nil
	_ = unix.Close(o.file)
	return g, nil
}

// give passes the memory to the process at the other end.
func (o *Offer) give(ctx context.Context, conn *net.UnixConn) (process int, err error) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := sameUser(conn); err != nil {
		return 0, err
	}
	var b [1]byte
	if _, err := conn.Read(b[:]); err != nil {
		return 0, err
	}
	if process = int(b[0]); process == 0 || process >= o.board.Processes {
		return 0, fmt.Errorf("sharedmemory: process %d of %d", process, o.board.Processes)
	}
	_, _, err = conn.WriteMsgUnix(b[:], unix.UnixRights(append([]int{o.file}, o.bells...)...), nil)
	return process, err
}

// Close frees an offer that nobody has accepted.
func (o *Offer) Close() {
	if o.listener != nil {
		_ = o.listener.Close()
	}
	if o.board != nil {
		_ = unix.Munmap(o.board.memory)
	}
	closeAll(o.bells)
	_ = unix.Close(o.file)
}

// Take takes the memory that the first process offers under a name, as another one.
func Take(ctx context.Context, name string, s Shape, own int) (*Group, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", name)
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) {
			err = fmt.Errorf("%w: it has ended, or is in another network namespace", err)
		}
		return nil, fmt.Errorf("sharedmemory: calling the first process of the host: %w", err)
	}
	conn := c.(*net.UnixConn)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	b, err := take(conn, s, own)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("sharedmemory: taking the memory of the first process of the host: %w", err)
	}
	return &Group{Board: b, others: map[int]*net.UnixConn{0: conn}}, nil
}

func take(conn *net.UnixConn, s Shape, own int) (*Board, error) {
	if err := sameUser(conn); err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte{byte(own)}); err != nil {
		return nil, err
	}
	b, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4*(1+s.Processes)))
	_, n, _, _, err := conn.ReadMsgUnix(b, control)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no memory has come"), err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1+s.Processes {
		closeAll(files)
		return nil, errors.Join(fmt.Errorf("%d files have come, want the memory and %d bells", len(files), s.Processes), err)
	}
	board, err := check(files[0], s, own)
	_ = unix.Close(files[0])
	if err != nil {
		closeAll(files[1:])
		return nil, err
	}
	board.bells = newBells(files[1:], own)
	return board, nil
}

// check maps memory that is as it should be.
func check(file int, s Shape, own int) (*Board, error) {
	var is unix.Stat_t
	if err := unix.Fstat(file, &is); err != nil {
		return nil, err
	}
	sealed, err := unix.FcntlInt(uintptr(file), unix.F_GET_SEALS, 0)
	if err != nil {
		return nil, err
	}
	if is.Size != int64(s.size()) || sealed&seals != seals {
		return nil, fmt.Errorf("memory of %d bytes with seals %#x, want %d with %#x", is.Size, sealed, s.size(), seals)
	}
	return mapped(file, s, own, nil)
}

// sameUser refuses a process of another user.
func sameUser(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var of *unix.Ucred
	if e := raw.Control(func(fd uintptr) { of, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil || err != nil {
		return errors.Join(e, err)
	}
	if own := os.Getuid(); int(of.Uid) != own {
		return fmt.Errorf("the other process is of user %d, this one of %d", of.Uid, own)
	}
	return nil
}

// Watch has died called for each process that dies, of those to which this one is connected, until
// Close.
func (g *Group) Watch(died func(process int)) {
	for process, conn := range g.others {
		g.tasks.Go(func() {
			var b [1]byte
			if n, _ := conn.Read(b[:]); n == 0 && !g.closes.Load() {
				died(process)
			}
		})
	}
}

// Close ends the connections, so that others do not take it for a death, and unmaps the memory.
// Nobody may use it any more, but Ring and LastWay.
func (g *Group) Close() error {
	g.closes.Store(true)
	for _, conn := range g.others {
		_, _ = conn.Write([]byte{0}) // which may have gone before
		_ = conn.CloseRead()
	}
	g.tasks.Wait()
	for _, conn := range g.others {
		_ = conn.Close()
	}
	g.using.Lock()
	defer g.using.Unlock()
	g.isFreed = true
	g.bells.(*eventBells).close(g.own)
	return unix.Munmap(g.memory)
}
