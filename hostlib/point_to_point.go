package hostlib

import (
	"context"
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib/rail"
)

// Tag distinguishes the messages between two members.
type Tag uint32

// AnyTag is a receive's for a message of whatever tag. No message has it.
const AnyTag = ^Tag(0)

// MessageStatus is what came of a message.
type MessageStatus struct {
	Tag      Tag // of the message
	Elements int // that were sent, or received
}

// Send sends a vector to another member, and waits until it has arrived at that member's host: up
// to 64 KiB (rail.Config) whether a receive awaits it or not, more as soon as one does. Messages of
// one member and tag are received in the order in which they were sent. If ctx ends first, Send fails
// with an error that wraps ctx's; the message may have arrived. When the other member dies, it fails
// with a *MemberError. The death of a third one ends no messages, though it ends the communicator's
// operations; a Revoke ends all.
func Send[T Data](ctx context.Context, c *Communicator, to int, tag Tag, v []T) error {
	_, err := StartSend(c, to, tag, v).finish(ctx)
	return err
}

// Recv receives the earliest message of a tag, or of AnyTag, from another member into v. Of a
// longer message v is filled, and the error wraps ErrTruncated. If ctx ends before there is a
// message, it is left to another receive.
func Recv[T Data](ctx context.Context, c *Communicator, from int, tag Tag, v []T) (MessageStatus, error) {
	return StartRecv(c, from, tag, v).finish(ctx)
}

// ErrTruncated: the message was longer than the memory for it; what had room is there.
var ErrTruncated = errors.New("hostlib: the message is longer than the memory for it")

// ErrCanceled: the message was canceled.
var ErrCanceled = errors.New("hostlib: the message was canceled")

// Message is a message under way. Its vector must not be touched until it is done.
type Message struct {
	c       *Communicator
	request *rail.Request // nil: it has failed before
	peer    int
	code    uint8 // of a receive: what its elements are
	width   int
	after   func()
	err     error
}

// StartSend is Send without waiting.
func StartSend[T Data](c *Communicator, to int, tag Tag, v []T) *Message {
	m := &Message{c: c, peer: to, width: widthOf[T]()}
	if tag == AnyTag {
		return m.fail(fmt.Errorf("%w: a message of AnyTag, which is for receives", ErrArgument))
	}
	space, p, err := c.reach(to)
	if err != nil {
		return m.fail(err)
	}
	m.request = space.StartSend(p, messageTag[T](tag), lend(v).bytes)
	m.check()
	return m
}

// StartRecv is Recv without waiting.
func StartRecv[T Data](c *Communicator, from int, tag Tag, v []T) *Message {
	m := &Message{c: c, peer: from, code: dataCode[T](), width: widthOf[T]()}
	space, p, err := c.reach(from)
	if err != nil {
		return m.fail(err)
	}
	ignore := rail.Tag(0)
	if tag == AnyTag {
		ignore = rail.Tag(^uint32(0))
	}
	l := lend(v)
	m.after = l.get
	m.request = space.StartRecv(p, messageTag[T](tag), ignore|typeBits, l.bytes)
	m.check()
	return m
}

// check cancels a message whose other member has died while it was begun.
func (m *Message) check() {
	m.c.direct.mu.Lock()
	err := m.c.withoutMessages(m.peer)
	m.c.direct.mu.Unlock()
	if err != nil {
		m.request.Cancel()
	}
}

// typeBits are the bits of a message's tag that say of what elements it is.
const typeBits = rail.Tag(15 << 32)

// messageTag returns the tag of a message: the caller's, and what its elements are.
func messageTag[T Data](tag Tag) rail.Tag { return rail.Tag(dataCode[T]())<<32 | rail.Tag(tag) }

func (m *Message) fail(err error) *Message {
	m.err = err
	return m
}

// failed is the channel of messages that failed before they began.
var failed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done returns a channel that is closed when the message is done.
func (m *Message) Done() <-chan struct{} {
	if m.request == nil {
		return failed
	}
	return m.request.Done()
}

// Wait waits until the message is done. If ctx ends first its error is returned, and the message
// goes on.
func (m *Message) Wait(ctx context.Context) (MessageStatus, error) {
	if m.request == nil {
		return MessageStatus{}, m.err
	}
	s, isDone, err := doneBefore(ctx, m.request)
	if !isDone {
		return MessageStatus{}, fmt.Errorf("hostlib: waiting for a message: %w", context.Cause(ctx))
	}
	return m.outcome(s, err)
}

// Test reports whether the message is done, and what came of it.
func (m *Message) Test() (s MessageStatus, isDone bool, err error) {
	if m.request == nil {
		return MessageStatus{}, true, m.err
	}
	of, isDone, err := m.request.Test()
	if !isDone {
		return MessageStatus{}, false, nil
	}
	s, err = m.outcome(of, err)
	return s, true, err
}

// Cancel has the message end early, with ErrCanceled, if it can: a receive that has no message
// yet, and a message of which the other side has nothing yet. It does not wait.
func (m *Message) Cancel() {
	if m.request != nil {
		m.request.Cancel()
	}
}

// finish waits for a message that no caller has seen, and cancels it when ctx ends.
func (m *Message) finish(ctx context.Context) (MessageStatus, error) {
	if m.request == nil {
		return MessageStatus{}, m.err
	}
	s, isDone, err := doneBefore(ctx, m.request)
	if isDone {
		return m.outcome(s, err)
	}
	m.request.Cancel()
	s, err = m.request.Wait(context.Background())
	of, err := m.outcome(s, err)
	if errors.Is(err, ErrCanceled) {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return of, err
}

// outcome returns what came of a message that is done.
func (m *Message) outcome(s rail.Status, err error) (MessageStatus, error) {
	if m.after != nil {
		m.after()
		m.after = nil
	}
	of := MessageStatus{Tag: Tag(s.Tag), Elements: s.Size / m.width}
	switch {
	case err == nil && m.code != 0 && uint8(s.Tag>>32&15) != m.code:
		return of, fmt.Errorf("%w: rank %d has sent %s, for elements of %s", ErrArgument, m.peer, elementName(uint8(s.Tag>>32&15)), elementName(m.code))
	case err == nil:
		return of, nil
	case errors.Is(err, rail.ErrTruncated):
		return of, fmt.Errorf("%w: %d elements from rank %d", ErrTruncated, of.Elements, m.peer)
	case errors.Is(err, rail.ErrLost), errors.Is(err, rail.ErrUnreachable), isEndOfLife(err) && !m.c.isOfEarlierLife(err):
		if m.c.directErr(m.peer) == nil {
			m.c.lost(m.peer, err)
		}
	}
	if ended := m.c.directErr(m.peer); ended != nil {
		return of, ended
	}
	switch {
	case errors.Is(err, rail.ErrCanceled), errors.Is(err, rail.ErrWithdrawn):
		return of, ErrCanceled
	case errors.Is(err, rail.ErrClosed):
		return of, fmt.Errorf("%w: %w", ErrEnded, ErrClosed)
	}
	return of, fmt.Errorf("hostlib: a message with rank %d: %w", m.peer, err)
}
