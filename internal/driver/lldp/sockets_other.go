//go:build !linux

package lldp

import "context"

func system() sockets { return none{} }

type none struct{}

func (none) port(int) (conn, error) { return nil, ErrUnsupported }
func (none) permitted() error       { return ErrUnsupported }
func (none) claim(context.Context, func(int)) (func(), error) {
	return nil, ErrUnsupported
}
