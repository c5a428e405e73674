package field

import (
	"errors"
	"os/exec"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// stream is a TCP stream beside the groups.
type stream struct{ source, sink *process }

// StartStream starts a TCP stream from the first host to the last, which uses
// their links beside the groups that measure: as fast as it goes, and until the
// fabric is closed or the time has passed. There is one at most.
func (f *Fabric) StartStream(lasting time.Duration) error {
	if f.stream != nil {
		return errors.New("there is a stream already")
	}
	g := f.lab.Topology()
	from, to := topology.NodeID(0), topology.NodeID(g.Hosts()-1)
	address := at(f.lab.HostAddr(to), streamPort)
	in := func(n topology.NodeID) func(*exec.Cmd) error {
		return func(c *exec.Cmd) error { return f.lab.Start(n, c) }
	}
	sink, err := launchMeasured("sink", f.command(roleHost, "sink", "node", "drain", "--listen", address), in(to))
	if err != nil {
		return err
	}
	source, err := launch("source", f.command(roleHost, "source", "node", "pour", "--to", address, "--for", lasting.String()), in(from))
	if err != nil {
		stop([]*process{sink})
		return err
	}
	f.stream = &stream{source, sink}
	return nil
}
