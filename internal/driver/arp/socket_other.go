//go:build !linux

package arp

func open() (socket, error) { return nil, ErrUnsupported }
