package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/hostlib"
)

// firstPort is that of the first forming, counted from the group's own: ports of
// several groups are in between.
const firstPort = 100

// forming is a process's part in --function form: a second process of its host, by
// its label, which forms one communicator with those of the other hosts.
type forming struct {
	run     *runFlags
	config  hostlib.Config
	members []hostlib.Member
	options []hostlib.GroupOption
	number  int // of the operation; none before it has had its ports

	host *hostlib.Host
	comm *hostlib.Communicator
}

// at returns the address at which a process of this operation is beside another one.
func (f *forming) at(address string) (string, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return "", err
	}
	const most = 20000
	return netip.AddrPortFrom(a.Addr(), a.Port()+firstPort+uint16(f.number%most)).String(), nil
}

func (f *forming) Join(ctx context.Context) (err error) {
	f.config.Process = fmt.Sprint("form-", f.number)
	if f.config.Listen, err = f.at(f.config.Listen); err != nil {
		return err
	}
	f.members = slices.Clone(f.members)
	for i := range f.members {
		m := &f.members[i]
		m.Process = f.config.Process
		if m.Addr, err = f.at(m.Addr); err != nil {
			return err
		}
	}
	f.host, err = hostlib.Join(ctx, f.config)
	return err
}

func (f *forming) Communicator(ctx context.Context) (_ *hostlib.Communicator, err error) {
	f.comm, err = f.host.Communicator(ctx, fmt.Sprint(f.run.name, "-", f.number), f.members, f.options...)
	return f.comm, err
}

func (f *forming) Close(ctx context.Context) (err error) {
	if f.comm != nil {
		err = f.comm.Leave(ctx)
	}
	if f.host != nil {
		if e := f.host.Close(ctx); err == nil {
			err = e
		}
	}
	return err
}
