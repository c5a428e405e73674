package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/broadcast"
	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/topology"
)

// scollPort is where members listen, each in a namespace of its own.
const scollPort = 7200

// runScollFabric measures a process for each host of a fabric of network
// namespaces.
func runScollFabric(cmd *cobra.Command, f *fabricFlags) error {
	usual := f.bench // of which the rate of links counts
	usual.collective = string(timing.Allreduce)
	c, err := usual.config()
	if err != nil {
		return err
	}
	fc, err := f.config(c, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return f.on(cmd.Context(), fc, func(ctx context.Context, fabric *field.Fabric) error {
		return f.measureScoll(ctx, cmd.OutOrStdout(), fabric, fc.Program[0])
	})
}

// measureScoll runs the program as a member on every host, and writes the rows of
// the first, which is the root.
func (f *fabricFlags) measureScoll(ctx context.Context, out io.Writer, fabric *field.Fabric, program string) (err error) {
	members := scollMembers(fabric)
	if _, err := f.scoll.plans(names(members)); err != nil { // rather than find it in a process
		return err
	}
	dir, err := os.MkdirTemp("", "collbench-scoll-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	list := filepath.Join(dir, "members")
	if err := writeList(list, members); err != nil {
		return err
	}
	f.scoll.json = f.format == "json"
	t := report.Rows[broadcast.Row]{Out: out, JSON: f.scoll.json}
	sink := &rowSink{take: t.Add, done: make(chan struct{})}
	var commands []*exec.Cmd
	for i, m := range members {
		args := append([]string{
			"node", "scoll", "--host", m.Host, "--members", list, "--manager", fabric.ManagerAddr(),
		}, f.scoll.arguments()...)
		process := exec.Command(program, args...)
		if i == 0 {
			process.Stdout = sink
		}
		commands = append(commands, process)
	}
	job, err := fabric.Guests("scoll", commands)
	if err != nil {
		return err
	}
	defer job.End(0)
	select {
	case <-sink.done:
	case <-job.Gone():
		return errors.Join(errors.New("a member has ended"), job.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
	return errors.Join(sink.err, writeRows(&t))
}

// scollMembers returns a member for each host.
func scollMembers(fabric *field.Fabric) (all []hostlib.Member) {
	lab := fabric.Lab()
	for n := range topology.NodeID(lab.Topology().Hosts()) {
		address := netip.AddrPortFrom(lab.HostAddr(n), scollPort)
		all = append(all, hostlib.Member{Host: lab.Topology().Name(n), Addr: address.String()})
	}
	return all
}

// writeList writes members into a file.
func writeList(path string, members []hostlib.Member) error {
	var b bytes.Buffer
	return errors.Join(field.WriteMembers(&b, members), os.WriteFile(path, b.Bytes(), 0o600))
}

// rowSink takes what the root writes: rows, and an empty line when it is done.
type rowSink struct {
	take func(broadcast.Row) error
	done chan struct{}
	rest []byte
	err  error // what was wrong, once done is closed
	over bool
}

// Write implements io.Writer.
func (s *rowSink) Write(b []byte) (int, error) {
	s.rest = append(s.rest, b...)
	for {
		line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole || s.over {
			return len(b), nil
		}
		s.rest = rest
		if len(line) == 0 {
			s.over = true
			close(s.done)
			continue
		}
		var row broadcast.Row
		if s.err = json.Unmarshal(line, &row); s.err == nil {
			s.err = s.take(row)
		}
		if s.err != nil {
			s.over = true
			close(s.done)
		}
	}
}
