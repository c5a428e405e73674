package rpc

import (
	"fmt"
	"strings"
	"time"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
)

// Alarm is a miscabling or contradiction that discovery has found, and that holds.
type Alarm struct {
	Kind   string       // as docs/discovery.md has it, such as "two-places"
	Places []AlarmPlace // one end, or both
	What   string
	Since  time.Time
}

// AlarmPlace is an end of a link, or a target.
type AlarmPlace struct {
	Node string // empty: it has no name
	Port string // the interface's name, or the target's address; empty: the whole node
}

// String returns such as "leaf-0 Ethernet8".
func (p AlarmPlace) String() string { return strings.TrimSpace(p.Node + " " + p.Port) }

// String returns the alarm as a line.
func (a Alarm) String() string {
	return fmt.Sprintf("%s: %s: %s", a.Kind, strings.Join(each(a.Places, AlarmPlace.String), " and "), a.What)
}

func alarm(a Alarm) *pb.Alarm {
	return &pb.Alarm{
		Kind: a.Kind, What: a.What, Since: timestamp(a.Since),
		Places: each(a.Places, func(p AlarmPlace) *pb.AlarmPlace { return &pb.AlarmPlace{Node: p.Node, Port: p.Port} }),
	}
}

func alarmOf(m *pb.Alarm) Alarm {
	return Alarm{
		Kind: m.GetKind(), What: m.GetWhat(), Since: timeOf(m.GetSince()),
		Places: each(m.GetPlaces(), func(p *pb.AlarmPlace) AlarmPlace { return AlarmPlace{p.GetNode(), p.GetPort()} }),
	}
}
