package peer

import (
	"context"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// places are where a host that is held is to be reached.
type places struct {
	all    []place // the last one was named last
	failed int     // calls
}

type place struct {
	address string
	holds   int
}

// Hold has a connection to a host be made, at an address, or if that is empty where
// Config.Resolve says, and made again whenever it ends, until Release was called as often.
// Of several addresses the one that was named last is called first, and others where
// nobody answers.
func (h *Host) Hold(host string, class Class, address string) {
	h.mu.Lock()
	p := h.book[host]
	if p == nil {
		p = &places{}
		h.book[host] = p
	}
	i := slices.IndexFunc(p.all, func(o place) bool { return o.address == address })
	if i < 0 {
		p.all, p.failed = append(p.all, place{address: address}), 0
		i = len(p.all) - 1
	}
	p.all[i].holds++
	h.mu.Unlock()
	h.add(peering.Input{Kind: peering.Held, Peer: host, Class: uint8(class)})
}

// Release ends one Hold.
func (h *Host) Release(host string, class Class, address string) {
	h.mu.Lock()
	if p := h.book[host]; p != nil {
		if i := slices.IndexFunc(p.all, func(o place) bool { return o.address == address }); i >= 0 {
			if p.all[i].holds--; p.all[i].holds == 0 {
				p.all = slices.Delete(p.all, i, i+1)
			}
		}
		if len(p.all) == 0 {
			delete(h.book, host)
		}
	}
	h.mu.Unlock()
	h.add(peering.Input{Kind: peering.Released, Peer: host, Class: uint8(class)})
}

// resolve returns where the next call of a host goes.
func (h *Host) resolve(ctx context.Context, host string) (string, error) {
	address := ""
	h.mu.Lock()
	if p := h.book[host]; p != nil {
		address = p.all[len(p.all)-1-p.failed%len(p.all)].address
	}
	h.mu.Unlock()
	if address != "" {
		return address, nil
	}
	return h.cfg.Resolve(ctx, host)
}
