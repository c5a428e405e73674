package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/pathsel"
)

// errMisplaced: a link's traffic is not that of the tree.
var errMisplaced = errors.New("the tree is not where it was planned")

// watch compares what links carry with where the tree is.
type watch struct {
	ctx    context.Context
	fabric *field.Fabric
	cfg    timing.Config
	clean  bool // no packet is lost on purpose
	alone  bool // nothing but one group uses the links
	log    io.Writer

	sizes  int // measurements so far
	before netlab.Counts
	tree   pathsel.Tree
	noTree error
	alarms int
}

// mark is notified when a measurement begins and ends.
func (w *watch) mark(size int, begins bool) (err error) {
	if begins {
		fmt.Fprintf(w.log, "measuring %d bytes\n", size)
		w.tree, w.noTree = pathsel.Tree{}, field.ErrNoTree
		if w.cfg.Transport != timing.Host {
			w.tree, w.noTree = w.fabric.Tree(w.ctx)
		}
		w.before, err = w.fabric.Lab().Counts()
		return err
	}
	after, err := w.fabric.Lab().Counts()
	if err != nil {
		return err
	}
	iterations := w.cfg.Iterations[min(w.sizes, len(w.cfg.Iterations)-1)]
	w.sizes++
	w.account(after.Since(w.before), uint64(size)*uint64(iterations))
	return nil
}

// Slack of the links, for barriers, probes, and the host tree's connections.
const (
	slackBytes = 256 << 10
	slackShare = 16 // of what was carried, one of so many
)

// account reports what links carried of so many bytes of vectors.
func (w *watch) account(counts netlab.Counts, payload uint64) {
	if w.noTree != nil {
		fmt.Fprintf(w.log, "  no tree: %v\n", w.noTree)
		return
	}
	g := w.fabric.Lab().Topology()
	c := audit(g, w.tree, counts, payload, payload/slackShare+slackBytes)
	fmt.Fprintf(w.log, "  tree with root %s: each of its links carried %d to %d bytes in each direction, others %d at most; %d packets found a queue full\n",
		g.Name(w.tree.Root()), c.least, c.most, c.stray, c.dropped)
	if payload == 0 || !w.alone || w.cfg.Collective != timing.Allreduce {
		return
	}
	fmt.Fprintf(w.log, "  that is %.4f to %.4f of the vectors' bytes\n", float64(c.least)/float64(payload), float64(c.most)/float64(payload))
	for _, alarm := range c.alarms {
		fmt.Fprintf(w.log, "  ALARM: %s\n", alarm)
	}
	w.alarms += len(c.alarms)
}

// err reports that a link's traffic was not that of the tree, where it had to
// be.
func (w *watch) err() error {
	if w.alarms > 0 && w.clean && w.cfg.Transport == timing.Offload {
		return fmt.Errorf("%w: %d alarms", errMisplaced, w.alarms)
	}
	return nil
}
