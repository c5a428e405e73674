package rail_test

import (
	"context"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
)

func init() {
	rail.Join = func(ctx context.Context, c rail.TestConfig) (*rail.TestHost, error) {
		of := hostlib.Config{Name: c.Name, Listen: c.Listen, Resolve: c.Resolve, TLS: (*hostlib.TLS)(c.TLS), DeadAfter: c.DeadAfter}
		for _, r := range c.Rails {
			of.Rails = append(of.Rails, railOf(r))
		}
		h, err := hostlib.Join(hooks.With(ctx, hooks.Hooks{Interfaces: c.Interfaces}), of)
		if err != nil {
			return nil, err
		}
		return &rail.TestHost{
			Host: h, Close: h.Close, RemoveRail: h.RemoveRail,
			AddRail: func(ctx context.Context, r rail.TestRail) error { return h.AddRail(ctx, railOf(r)) },
		}, nil
	}
}

func railOf(r rail.TestRail) hostlib.Rail {
	return hostlib.Rail{Name: r.Name, Address: r.Address, Network: r.Network, Kind: hostlib.RailKind(r.Kind)}
}
