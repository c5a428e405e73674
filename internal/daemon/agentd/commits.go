package agentd

import (
	"errors"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
)

// gate holds the answers to Commits back until the data plane has the epoch:
// who reads Committed may send to the switch.
type gate []*install

// install is an epoch that the data plane was given and has not answered for.
type install struct {
	agent.Action
	replies []agent.Reply // that wait
}

func (g *gate) begin(a *agent.Action) { *g = append(*g, &install{Action: *a}) }

// holds takes a reply that has to wait.
func (g *gate) holds(r agent.Reply) bool {
	if r.Kind != agent.Committed {
		return false
	}
	for _, i := range *g {
		if i.Group == r.Group && i.Epoch == r.Epoch {
			i.replies = append(i.replies, r)
			return true
		}
	}
	return false
}

// end takes the answer for an epoch; nil: there is no such one.
func (g *gate) end(socket uint64, epoch uint32) *install {
	for at, i := range *g {
		if i.Socket == socket && i.Epoch == epoch {
			*g = append((*g)[:at], (*g)[at+1:]...)
			return i
		}
	}
	return nil
}

// installed answers the Commits of an epoch that the data plane has taken, or
// has not. It runs in the agent core's loop.
func (d *Daemon) installed(e dataplane.Installed) {
	i := d.commits.end(e.Socket, e.Epoch)
	if i == nil {
		return
	}
	about := []any{
		slog.Uint64("group", uint64(i.Group)), slog.Uint64("epoch", uint64(i.Epoch)),
		slog.Int("children", len(i.Config.Children)), slog.Uint64("window", uint64(i.Config.Window)),
		slog.String("reducer", e.Reducer.String()),
	}
	if e.Err != nil {
		d.log.Error("epoch refused by the data plane", append(about, slog.Any("error", e.Err))...)
	} else {
		d.log.Info("epoch in use", about...)
	}
	for _, r := range i.replies {
		r.Reducer = e.Reducer
		if e.Err != nil {
			r.Kind, r.Refusal = agent.Refused, d.refusal(e.Err)
		}
		d.desk.Answer(r.Req, r)
	}
}

// refusal reports to a manager why the data plane does not take an epoch. For the lack of
// slots there is a remedy, a smaller window.
func (d *Daemon) refusal(why error) *agent.Refusal {
	r := &agent.Refusal{Cause: agent.Socket, Switch: d.cfg.Switch, Detail: why.Error()}
	if slots := (*dataplane.SlotsError)(nil); errors.As(why, &slots) {
		r.Cause, r.Need, r.Free, r.Detail = agent.Slots, slots.Need, slots.Free, "in one piece"
	}
	return r
}
