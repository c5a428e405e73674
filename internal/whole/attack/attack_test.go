package attack_test

import "testing"

// TestAttack: nobody forges a number, a name or a death.
func TestAttack(t *testing.T) {
	f := newFabric(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"packets", f.testPackets},
		{"plain packets in view", f.testPlain},
		{"edges between switches", f.testEdges},
		{"greetings", f.testGreetings},
		{"frames", f.testFrames},
		{"streams", f.testStreams},
		{"roles", f.testRoles},
		{"hosts", f.testHosts},
		{"replays", f.testReplays},
		{"zone", f.testZone},
		{"key", f.testKey},
		{"links", f.testLinks},
		{"servers", f.testServers},
		{"admin", f.testAdmin},
	} {
		t.Run(part.name, func(t *testing.T) {
			whole := f.TB
			defer func() { f.TB = whole }()
			f.TB = t
			part.run(t)
		})
	}
	f.matrix.log(t)
}
