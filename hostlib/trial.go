package hostlib

import "github.com/tributary-fabric/tributary/internal/driver/transport"

// WithTrialLoss has the host lose packets that it sends to switches, each with
// probability p from 0 to 1, at random from a seed: for trials of how the
// fabric repairs that.
func WithTrialLoss(p float64, seed uint64) Option {
	return func(s *settings) {
		s.wrapData = func(c transport.Conn) transport.Conn {
			lossy, err := transport.WithFaults(c, transport.Faults{Loss: min(max(p, 0), 1), Seed: seed})
			if err != nil {
				return c // p is not a number
			}
			return lossy
		}
	}
}
