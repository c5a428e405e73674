package demo

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	hosts "github.com/tributary-fabric/tributary/ranktree"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// hostTree returns the tree over which that many members reduce.
func hostTree(members int) hosts.Tree { return endpoint.Config{Size: members}.Tree() }

// check holds what the last operation left at all members against what it
// should be.
func (s *stage) check() {
	o := &s.report.Operations[len(s.report.Operations)-1]
	o.wrong = s.verify(o)
	o.Correct = o.wrong == nil
	if o.Correct {
		s.say("operation %d is correct", len(s.report.Operations))
	} else {
		s.say("operation %d is WRONG: %v", len(s.report.Operations), o.wrong)
	}
}

func (s *stage) verify(o *Operation) error {
	first := s.vectors.output(0)
	for r := 1; r < s.graph.Hosts(); r++ {
		if other := s.vectors.output(r); !bytes.Equal(first, other) {
			return fmt.Errorf("%s and %s have different results", s.graph.Name(0), s.graph.Name(topology.NodeID(r)))
		}
	}
	if err := (alone{s.cfg.Function, s.cfg.Type}).check(first, s.vectors.inputs); err != nil {
		return err
	}
	folds, complete := s.folds(o)
	if !complete {
		s.say("operation %d also ran over a tree that was replaced at once: its bits are not compared with that of one tree, its values are right", len(s.report.Operations))
		return nil
	}
	size := reduce.ElementSize(s.cfg.Function, s.cfg.Type)
	return checkFolds(first, chunkBytes/size*size, folds)
}

// folds returns what the inputs come to on each tree that the operation can
// have used, and whether these are all.
func (s *stage) folds(o *Operation) (folds []fold, complete bool) {
	first, last := slices.Min(o.Epochs), slices.Max(o.Epochs)
	known := 0
	for _, t := range s.known {
		if first <= t.epoch && t.epoch <= last {
			folds = append(folds, fold{fmt.Sprintf("the tree of epoch %d", t.epoch), foldSwitches(s.kernel, t.tree, s.vectors.inputs)})
			known++
		}
	}
	even := int(last/2) - int((first+1)/2) + 1 // epochs of trees of switches from first to last
	if o.Transport != hostlib.Offload.String() {
		folds = append(folds, fold{"the tree of hosts", foldHosts(s.kernel, hostTree(len(s.vectors.inputs)), s.vectors.inputs)})
	}
	return folds, known == even
}
