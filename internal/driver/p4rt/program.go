package p4rt

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"
)

// call makes a call that the target has to answer within a time. Errors are of
// this package, or the context's.
func call(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	inner, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%w: no answer within %v", ErrWedged, within))
	defer cancel()
	return callError(inner, ctx, f(inner))
}

// Push gives the target the program, which takes all entries, groups and
// registers from it, and checks that it has it. It returns the cookie of the
// push. After an error a target may have no program, or, bmv2 for one, not
// answer any more.
func (c *Client) Push(ctx context.Context) (cookie uint64, err error) {
	if err := c.writing.take(ctx); err != nil {
		return 0, c.fail("push", err)
	}
	defer c.writing.give()
	if err := c.looking.take(ctx); err != nil {
		return 0, c.fail("push", err)
	}
	defer c.looking.give()
	l, err := c.connected()
	if err != nil {
		return 0, c.fail("push", err)
	}
	cookie = c.cfg.Pipeline.cookie(drawn())
	if err := c.set(ctx, l, cookie); err != nil {
		return 0, c.fail("push", err)
	}
	if err := c.verify(ctx, l, cookie); err != nil {
		return 0, c.fail("reading back what was pushed", err)
	}
	c.step(func(s *session) []Event { s.push(cookie); return nil })
	return cookie, nil
}

// drawn returns the lower half of a cookie: what is drawn twice would hide a
// restart between two pushes.
func drawn() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint32(b[:])
}

func (c *Client) set(ctx context.Context, l *link, cookie uint64) error {
	info := new(p4config.P4Info)
	if err := prototext.Unmarshal([]byte(c.cfg.Pipeline.P4Info), info); err != nil {
		return fmt.Errorf("%w: %w", ErrProgram, err)
	}
	return l.call(ctx, c.cfg.PushDeadline, func(ctx context.Context) error {
		_, err := l.api.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
			DeviceId: c.cfg.Device, ElectionId: c.cfg.Election.proto(),
			Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
			Config: &p4v1.ForwardingPipelineConfig{
				P4Info: info, P4DeviceConfig: c.cfg.Pipeline.Device,
				Cookie: &p4v1.ForwardingPipelineConfig_Cookie{Cookie: cookie},
			},
		})
		return err
	})
}

// get asks for what the target holds. ErrNoPipeline is nothing.
func (c *Client) get(ctx context.Context, l *link, within time.Duration, what p4v1.GetForwardingPipelineConfigRequest_ResponseType) (*p4v1.ForwardingPipelineConfig, error) {
	var answer *p4v1.GetForwardingPipelineConfigResponse
	err := l.call(ctx, within, func(ctx context.Context) (err error) {
		answer, err = l.api.GetForwardingPipelineConfig(ctx, &p4v1.GetForwardingPipelineConfigRequest{
			DeviceId: c.cfg.Device, ResponseType: what,
		})
		return err
	})
	return answer.GetConfig(), err
}

// verify checks that the target holds what was pushed with cookie.
func (c *Client) verify(ctx context.Context, l *link, cookie uint64) error {
	held, err := c.get(ctx, l, c.cfg.PushDeadline, p4v1.GetForwardingPipelineConfigRequest_ALL)
	if err != nil {
		return err
	}
	if got := held.GetCookie().GetCookie(); got != cookie {
		return fmt.Errorf("%w: it reports the cookie %#x instead of %#x", ErrOtherPipeline, got, cookie)
	}
	return c.cfg.Pipeline.holds(held.GetP4Info(), held.GetP4DeviceConfig())
}

// look finds out what the target holds, and reports what is new about it.
func (c *Client) look(ctx context.Context, l *link) error {
	if err := c.looking.take(ctx); err != nil {
		return err
	}
	defer c.looking.give()
	held, err := c.holding(ctx, l)
	if err != nil {
		return err
	}
	c.step(func(s *session) []Event {
		if c.link != l {
			return nil // the look of an earlier session reports nothing of this one
		}
		return s.look(held)
	})
	return nil
}

// holding asks what the target holds. One that holds a program without a cookie
// answers the question for the cookie as one that holds nothing does.
func (c *Client) holding(ctx context.Context, l *link) (holding, error) {
	config, err := c.get(ctx, l, c.cfg.Deadline, p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY)
	if err == nil && config.GetCookie() == nil {
		config, err = c.get(ctx, l, c.cfg.Deadline, p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE)
	}
	if errors.Is(err, ErrNoPipeline) {
		return holding{}, nil
	}
	if err != nil {
		return holding{}, err
	}
	return holding{
		any:    config.GetCookie() != nil || config.GetP4Info() != nil,
		cookie: config.GetCookie().GetCookie(),
	}, nil
}
