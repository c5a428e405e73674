package store

import (
	"fmt"
	"net/netip"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// oldest is the first version that can be read.
const oldest = 1

// upgrade makes a store of an earlier version one of this: all of it, or
// nothing.
func (s *File) upgrade(from int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.do(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			all, err := load(tx, decoders[from])
			if err != nil {
				return fmt.Errorf("upgrading from version %d: %w", from, err)
			}
			if err := save(tx, all); err != nil {
				return err
			}
			return tx.Bucket(storeBucket).Put(versionKey, seal(versionKey, []byte(strconv.Itoa(Version))))
		})
	})
}

// decoders read the records of earlier versions. Version 2 has no bundles of groups
// and does not report what trees share: it is as if there were none. Version 3 has no
// names of links: the numbers are taken for those of the topology. Version 4 has no history
// of the map. Version 5 has no trees by rail. Version 6 has no trees of the least load by
// default: their criterion is the one that their purpose decided on, and is kept until
// they are replaced. The numbers of criteria are the same in all versions.
var decoders = map[int]func(key, text []byte) (manager.Record, error){1: decode1, 2: decode, 3: decode, 4: decode, 5: decode, 6: decode}

// What records of version 1 had: trees were reported with fewer figures. Their groups had
// no purpose, which is the same as none.
type (
	value1 struct {
		Seq   uint64         `json:"seq"`
		Spec  *manager.Spec  `json:"spec,omitempty"`
		Trees *trees1        `json:"trees,omitempty"`
		Fleet *manager.Fleet `json:"fleet,omitempty"`
	}
	trees1 struct {
		Epoch uint32
		Live  []tree1
		Ended bool
	}
	tree1 struct {
		Epoch    uint32
		Window   uint32
		Choice   choice1
		Switches []manager.Site
		Members  []netip.AddrPort
	}
	choice1 struct {
		Tree      pathsel.Tree
		Cost      pathsel.Cost
		RunnersUp []alternative1
		Reason    string
		Usable    int
		Examined  int
	}
	alternative1 struct {
		Root topology.NodeID
		Cost pathsel.Cost
		Lost string
	}
)

// decode1 is decode for a record of version 1.
func decode1(key, text []byte) (r manager.Record, err error) {
	var v value1
	if r, err = parse(key, text, &v); err != nil {
		return r, err
	}
	r.Seq, r.Spec, r.Fleet = v.Seq, v.Spec, v.Fleet
	if t := v.Trees; t != nil {
		r.Trees = &manager.Trees{Epoch: t.Epoch, Ended: t.Ended}
		for i := range t.Live {
			r.Trees.Live = append(r.Trees.Live, t.Live[i].now())
		}
	}
	return r, valid(&r)
}

// now returns the tree as it is reported now.
func (t *tree1) now() manager.Tree {
	c := &t.Choice
	figures := func(c pathsel.Cost) pathsel.Figures {
		return pathsel.Figures{Hops: c.Hops, Depth: c.Depth, Use: c.Load}
	}
	p := pathsel.Plan{
		Tree: c.Tree, Figures: figures(c.Cost), Criterion: pathsel.FewestHops, Because: "an earlier version knew no other",
		Method: pathsel.ByShortestPaths, Reason: c.Reason, Tried: c.Examined,
	}
	for _, a := range c.RunnersUp {
		p.Rivals = append(p.Rivals, pathsel.Rival{Root: a.Root, Method: pathsel.ByShortestPaths, Figures: figures(a.Cost), Lost: a.Lost})
	}
	return manager.Tree{Epoch: t.Epoch, Window: t.Window, Plan: p, Switches: t.Switches, Members: t.Members}
}
