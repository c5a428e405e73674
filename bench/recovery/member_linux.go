package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/membership"
)

// MemberConfig is the configuration of a member's process.
type MemberConfig struct {
	Socket  string // where requests come from
	Rank    int
	Members []hostlib.Member
	Manager string        // address
	Zone    bool          // membership reports deaths
	Limit   time.Duration // of each request
	Log     *slog.Logger
}

// member is the process of a member.
type member struct {
	cfg    MemberConfig
	host   *hostlib.Host
	events *events
	comm   *hostlib.Communicator
}

// Member joins, and does what it is asked for until the other end closes the connection.
func Member(ctx context.Context, c MemberConfig) (err error) {
	own := c.Members[c.Rank]
	m := &member{cfg: c, events: &events{next: c.Log.Handler()}}
	config := hostlib.Config{
		Name: own.Host, Process: own.Process, Listen: own.Addr, Manager: c.Manager, AllowPlaintext: true, Log: slog.New(m.events),
	}
	if c.Zone {
		config.Membership = &membership.Config{}
		for _, o := range c.Members {
			config.Membership.Bootstrap = append(config.Membership.Bootstrap, o.Addr)
		}
	}
	if m.host, err = hostlib.Join(ctx, config); err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Limit)
		defer cancel()
		err = errors.Join(err, m.host.Close(limited))
	}()
	conn, err := net.Dial("unix", c.Socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	requests, replies := json.NewDecoder(conn), json.NewEncoder(conn)
	if err := replies.Encode(hello{c.Rank}); err != nil {
		return err
	}
	for {
		var r request
		switch err := requests.Decode(&r); {
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("a request: %w", err)
		}
		if err := replies.Encode(m.do(ctx, &r)); err != nil {
			return fmt.Errorf("a reply: %w", err)
		}
	}
}

// do does what is asked for.
func (m *member) do(ctx context.Context, r *request) reply {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.Limit, fmt.Errorf("%s took more than %v", r.What, m.cfg.Limit))
	defer cancel()
	var answer reply
	var err error
	switch {
	case r.What == form:
		err = m.form(ctx, r)
	case m.comm == nil:
		err = errors.New("there is no communicator")
	case r.What == plans:
		err = m.plans(ctx, r, &answer)
	case r.What == agree:
		err = m.agree(ctx, r, &answer)
	case r.What == fall:
		err = m.fall(ctx, &answer)
	case r.What == leave:
		err = m.comm.Leave(ctx)
		m.comm = nil
	default:
		err = fmt.Errorf("unknown request %q", r.What)
	}
	if err != nil {
		answer.Error = err.Error()
		if why := context.Cause(ctx); why != nil {
			answer.Error = why.Error() + ": " + answer.Error
		}
	}
	return answer
}

// form forms a communicator, whose first operation ends before it counts as formed.
func (m *member) form(ctx context.Context, r *request) (err error) {
	if r.Zone {
		if err := m.meet(ctx); err != nil {
			return err
		}
	}
	if m.comm, err = m.host.Communicator(ctx, r.Name, m.cfg.Members, Ways[r.Way]...); err != nil {
		return err
	}
	if _, err = hostlib.Barrier(ctx, m.comm); err != nil {
		return err
	}
	if via, why := m.comm.Transport(); r.Way == "switches" && via == hostlib.HostTree {
		return fmt.Errorf("%w: it is not on switches: %s", ErrWrong, why)
	}
	return nil
}

// meet waits until the zone has all members.
func (m *member) meet(ctx context.Context) error {
	there := map[string]bool{}
	for x := range m.host.Members().Notices(ctx) {
		if x.Kind == membership.Joined {
			there[x.Member.Name] = true
		} else {
			delete(there, x.Member.Name)
		}
		if len(there) == len(m.cfg.Members) {
			return nil
		}
	}
	return fmt.Errorf("the zone has %d of %d members: %w", len(there), len(m.cfg.Members), errors.Join(context.Cause(ctx), m.host.Err()))
}

// without returns the sum of the ranks' contributions without some of them.
func (m *member) without(ranks ...int) (sum int64) {
	for rank := range m.cfg.Members {
		if !slices.Contains(ranks, rank) {
			sum += contribution(rank)
		}
	}
	return sum
}

// contribution is what a rank adds to a sum that is checked.
func contribution(rank int) int64 { return int64(rank)*int64(rank) + 1 }
