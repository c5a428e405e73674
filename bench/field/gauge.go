package field

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
)

// gaugeFile is where a process that was started with --gauge finds its side.
const gaugeFile = 3

// ServeGauge serves, until the process ends or stop is called, the gauge that
// this process was given. Traffic returns what it has counted so far.
func ServeGauge(traffic func() (gauge.Traffic, error)) (stop func() error, err error) {
	f := os.NewFile(gaugeFile, "gauge")
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("--gauge: file %d is no socket: %w", gaugeFile, err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("--gauge: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = gauge.Serve(conn, traffic) // the other side learns of it by the end of the talk
	}()
	return func() error {
		err := conn.Close()
		<-done
		return err
	}, nil
}

// HostTraffic returns what counts a member's traffic.
func HostTraffic(comm *hostlib.Communicator) func() (gauge.Traffic, error) {
	return func() (gauge.Traffic, error) { return traffic(comm.Stats().Data), nil }
}

func traffic(c hostlib.DatagramCounters) gauge.Traffic {
	return gauge.Traffic{
		PacketsIn: c.PacketsIn, PacketsOut: c.PacketsOut, BytesIn: c.BytesIn, BytesOut: c.BytesOut,
		ReadCalls: c.ReadCalls, WriteCalls: c.WriteCalls, WaitCalls: c.WaitCalls,
	}
}

// switchTraffic returns what counts the traffic of an agent's trees.
func switchTraffic(ctx context.Context, d *agentd.Daemon) func() (gauge.Traffic, error) {
	return func() (sum gauge.Traffic, err error) {
		all, err := d.Counters(ctx)
		if err != nil {
			return sum, err
		}
		for _, t := range all.Trees {
			sum = sum.Add(gauge.Traffic{
				PacketsIn: t.PacketsIn, PacketsOut: t.PacketsOut, BytesIn: t.BytesIn, BytesOut: t.BytesOut,
				ReadCalls: t.Events["read-calls"], WriteCalls: t.Events["write-calls"], WaitCalls: t.Events["wait-calls"],
			})
		}
		return sum, nil
	}
}
