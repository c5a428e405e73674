package managerd

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// Operator is the operator's part of the topology: that of the Config until somebody
// sets or edits it. Without Config.Merge it is the map in effect.
type Operator struct {
	Version uint64 // counts its changes
	Graph   *topology.Graph
	Agents  map[string]string // "host:port" by switch
	Down    []string          // nodes and links that an operator has taken out of use, by name
}

// Operator returns the operator's part of the topology. Its map and slice are not to be
// changed.
func (d *Daemon) Operator() Operator {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	return d.operator
}

// SetTopology implements rpc.Manager.
func (d *Daemon) SetTopology(ctx context.Context, f rpc.TopologyFile) (rpc.TopologyDifference, error) {
	return d.reshape(ctx, f, "SetTopology", "has set the topology", func(o Operator) (Operator, error) {
		g, err := topology.Read(bytes.NewReader(f.Content), f.Name)
		if err != nil {
			return o, err
		}
		return o, o.become(g, f.Agents, d.wire())
	})
}

// wire returns the map in effect, whose switches and links the operator's part may speak
// of without having them; nil: there is no other map than the operator's part.
func (d *Daemon) wire() *topology.Graph {
	if d.cfg.Merge == nil {
		return nil
	}
	return d.view().Graph()
}

// EditTopology implements rpc.Manager.
func (d *Daemon) EditTopology(ctx context.Context, f rpc.TopologyFile) (rpc.TopologyDifference, error) {
	return d.reshape(ctx, f, "EditTopology", "has edited the topology", func(o Operator) (Operator, error) {
		wire := d.wire()
		p, err := o.Graph.Patched(f.Content, f.Name, func(name string) bool {
			return wire != nil && (has(wire, name) || slices.Contains(o.Down, name))
		})
		if err != nil {
			return o, err
		}
		down := o.Down
		o.rename(p.Renamed)
		if wire != nil {
			o.Down = append(o.Down, down...) // the wire may have the old names
		}
		for _, names := range [][]string{p.Down, p.Up} {
			canonical(p.Graph, names)
			if wire != nil {
				canonical(wire, names)
			}
		}
		o.Down = slices.DeleteFunc(append(slices.Clone(o.Down), p.Down...), func(name string) bool { return slices.Contains(p.Up, name) })
		agents := maps.Clone(p.Agents)
		maps.Copy(agents, f.Agents)
		return o, o.become(p.Graph, agents, wire)
	})
}

// rename gives agents, and what is down, the new names of nodes.
func (o *Operator) rename(renamed map[string]string) {
	agents := map[string]string{}
	for name, address := range o.Agents {
		agents[cmp.Or(renamed[name], name)] = address
	}
	o.Agents, o.Down = agents, slices.Clone(o.Down)
	for i, name := range o.Down {
		a, rest, isLink := strings.Cut(name, ":")
		if a = cmp.Or(renamed[a], a); !isLink {
			o.Down[i] = a
			continue
		}
		port, rest, _ := strings.Cut(rest, "--")
		b, other, _ := strings.Cut(rest, ":")
		x, y := a+":"+port, cmp.Or(renamed[b], b)+":"+other
		o.Down[i] = min(x, y) + "--" + max(x, y)
	}
}

// has reports whether a graph has a node or link of that name.
func has(g *topology.Graph, name string) bool {
	_, isNode := g.Lookup(name)
	_, isLink := g.LookupLink(name)
	return isNode || isLink
}

// canonical names the links of g in a list of names as linkName does.
func canonical(g *topology.Graph, names []string) {
	for i, name := range names {
		if l, ok := g.LookupLink(name); ok {
			names[i] = linkName(g, l)
		}
	}
}

// become makes g the graph, and gives switches other agents, none where the address is
// empty; they are switches of g or wire, which may be nil. What is said of nodes and links
// that were in the graph and are not in g goes; what is said of others stays. With a wire,
// which may have them, they stay out of use.
func (o *Operator) become(g *topology.Graph, agents map[string]string, wire *topology.Graph) error {
	was := o.Graph
	o.Graph = g
	next := map[string]string{}
	for name, address := range o.Agents {
		if n, ok := g.Lookup(name); ok && g.IsSwitch(n) || !ok && !has(was, name) {
			next[name] = address
		}
	}
	fresh := map[string]string{}
	for name, address := range agents {
		if address == "" {
			delete(next, name)
		} else {
			next[name], fresh[name] = address, address
		}
	}
	o.Agents = next
	o.Down = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(o.Down))), func(name string) bool {
		return wire == nil && has(was, name) && !has(g, name)
	})
	if wire != nil {
		for name := range agentsIn(wire, fresh) {
			if !has(g, name) {
				delete(fresh, name)
			}
		}
	}
	return checkFabric(g, fresh)
}

// maxAudited is how many lines of a change are in its record.
const maxAudited = 32

func first(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most]), fmt.Sprintf("and %d more", len(lines)-most))
}

// reshape makes a change of the operator's part, puts it into effect and stores it.
func (d *Daemon) reshape(ctx context.Context, f rpc.TopologyFile, method, did string, change func(Operator) (Operator, error)) (result rpc.TopologyDifference, err error) {
	defer func() {
		r := rpc.AuditOf(ctx, method, err)
		r.Object = f.Name
		r.Detail = fmt.Sprintf("version=%d dry-run=%v changes=%q", result.Version, f.DryRun, first(result.What, maxAudited))
		d.cfg.Audit.Record(r)
	}()
	d.editing.Lock()
	defer d.editing.Unlock()
	was := d.Operator()
	if f.Version != 0 && f.Version != was.Version {
		return rpc.TopologyDifference{}, fmt.Errorf("%w: it is version %d, and not %d", rpc.ErrVersion, was.Version, f.Version)
	}
	next, err := change(was)
	if err != nil {
		return rpc.TopologyDifference{}, fmt.Errorf("%w: %w", rpc.ErrTopology, err)
	}
	result = rpc.TopologyDifference{Version: was.Version, What: append(lines(topology.Compare(was.Graph, next.Graph)), was.differences(&next)...)}
	if f.DryRun || len(result.What) == 0 {
		return result, nil
	}
	next.Version++
	result.Version = next.Version
	who := "an operator"
	if caller, known := rpc.CallerOf(ctx); known {
		who = fmt.Sprintf("%s %s", caller.Role, caller.Name)
	}
	if err := d.install(was, next, who+" "+did); err != nil {
		return rpc.TopologyDifference{}, err
	}
	kept, err := encodeOperator(&next, d.settings())
	if err == nil {
		_, err = d.request(ctx, func(req uint64) manager.Input {
			return manager.Keep{Req: req, Kind: manager.OperatorRecord, Kept: kept}
		})
	}
	return result, err
}

// differences says in what agents and what is down differ.
func (o *Operator) differences(next *Operator) (all []string) {
	names := slices.Sorted(maps.Keys(o.Agents))
	for name := range next.Agents {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		switch was, is := o.Agents[name], next.Agents[name]; {
		case was == is:
		case was == "":
			all = append(all, fmt.Sprintf("agent of %s added at %s", name, is))
		case is == "":
			all = append(all, fmt.Sprintf("agent of %s removed", name))
		default:
			all = append(all, fmt.Sprintf("agent of %s changed from %s to %s", name, was, is))
		}
	}
	for _, name := range next.Down {
		if !slices.Contains(o.Down, name) {
			all = append(all, name+" taken out of use")
		}
	}
	for _, name := range o.Down {
		if !slices.Contains(next.Down, name) {
			all = append(all, name+" put into use")
		}
	}
	return all
}

// install puts an operator's part into effect: as the map, or where there is discovery by
// what merges it into that.
func (d *Daemon) install(was, next Operator, cause string) error {
	d.fabric.Lock()
	if d.ended {
		d.fabric.Unlock()
		return rpc.ErrClosing
	}
	c := FabricChange{Graph: next.Graph, Agents: next.Agents, Cause: cause, marks: marksOfOperator(was, next)}
	var err error
	if d.cfg.Merge == nil {
		err = d.setFabric(c)
	} else {
		err = d.change(c.marks)
	}
	if err == nil {
		d.operator = next
	}
	d.fabric.Unlock()
	if err == nil && d.cfg.Merge != nil {
		d.cfg.Merge(next, cause)
	}
	return err
}

// marksOfOperator returns what an operator's part has other than the one before of what
// is in use.
func marksOfOperator(was, next Operator) (marks []mark) {
	for _, name := range was.Down {
		if !slices.Contains(next.Down, name) {
			marks = append(marks, mark{what: name, source: byOperator, up: true})
		}
	}
	for _, name := range next.Down {
		marks = append(marks, mark{what: name, source: byOperator, why: "taken out of use"})
	}
	return marks
}

// DiffTopology implements rpc.Manager.
func (d *Daemon) DiffTopology(_ context.Context, f rpc.TopologyFile) (rpc.TopologyDifference, error) {
	d.fabric.Lock()
	operator, inEffect := d.operator, Operator{Graph: d.overlay.View().Graph(), Agents: d.agents, Down: d.operator.Down}
	d.fabric.Unlock()
	from, to := operator, inEffect
	if len(f.Content) > 0 {
		g, err := topology.Read(bytes.NewReader(f.Content), f.Name)
		if err != nil {
			return rpc.TopologyDifference{}, fmt.Errorf("%w: %w", rpc.ErrTopology, err)
		}
		from, to = inEffect, inEffect
		if err := to.become(g, f.Agents, d.wire()); err != nil {
			return rpc.TopologyDifference{}, fmt.Errorf("%w: %w", rpc.ErrTopology, err)
		}
	}
	what := append(lines(topology.Compare(from.Graph, to.Graph)), from.differences(&to)...)
	return rpc.TopologyDifference{Version: operator.Version, What: what}, nil
}

// TopologyFile implements rpc.Manager.
func (d *Daemon) TopologyFile(_ context.Context, inEffect bool) (rpc.TopologyFile, error) {
	d.fabric.Lock()
	f := rpc.TopologyFile{Name: "operator.yaml", Agents: d.operator.Agents, Version: d.operator.Version}
	g := d.operator.Graph
	if inEffect {
		f.Name, f.Agents, g = "map.yaml", d.agents, d.overlay.View().Graph()
	}
	d.fabric.Unlock()
	var b bytes.Buffer
	if err := topology.WriteYAML(&b, g); err != nil {
		return f, err
	}
	f.Content = b.Bytes()
	return f, nil
}

// keptOperator is an Operator as it is stored, in JSON.
type keptOperator struct {
	Version  uint64            `json:"version"`
	Topology []byte            `json:"topology"` // in the file format, JSON, compressed with gzip
	Agents   map[string]string `json:"agents,omitempty"`
	Down     []string          `json:"down,omitempty"`
	Settings []byte            `json:"settings,omitempty"` // the digest of the Config's topology and agents when this was stored
}

func encodeOperator(o *Operator, settings []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(topology.WriteJSON(z, o.Graph), z.Close()); err != nil {
		return nil, err
	}
	return json.Marshal(keptOperator{o.Version, b.Bytes(), o.Agents, o.Down, settings})
}

func decodeOperator(kept []byte) (o Operator, settings []byte, err error) {
	var k keptOperator
	if err := json.Unmarshal(kept, &k); err != nil {
		return o, nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(k.Topology))
	if err != nil {
		return o, nil, err
	}
	g, err := topology.Read(io.LimitReader(z, 1<<32), "the stored topology")
	if err != nil {
		return o, nil, err
	}
	return Operator{Version: k.Version, Graph: g, Agents: k.Agents, Down: k.Down}, k.Settings, nil
}

// settings returns the digest of what the Config has of the operator's part.
func (d *Daemon) settings() []byte {
	sum := sha256.New()
	_ = topology.WriteJSON(sum, d.cfg.Topology) // a hash takes everything
	for _, name := range slices.Sorted(maps.Keys(d.cfg.Agents)) {
		fmt.Fprintf(sum, "%q %q\n", name, d.cfg.Agents[name])
	}
	return sum.Sum(nil)
}

// restoreOperator takes the operator's part from the store, if it was stored with the
// same Config: else the Config is what somebody has changed last.
func (d *Daemon) restoreOperator(records []manager.Record) error {
	d.operator = Operator{Graph: d.cfg.Topology, Agents: d.cfg.Agents}
	for i := range records {
		if records[i].Kind != manager.OperatorRecord {
			continue
		}
		o, settings, err := decodeOperator(records[i].Kept)
		if err != nil {
			return fmt.Errorf("managerd: the store's topology: %w", err)
		}
		if !bytes.Equal(settings, d.settings()) {
			d.log.Warn("the configuration has another topology than when an operator changed it last: that of the configuration counts",
				slog.Uint64("version", o.Version))
			d.operator.Version = o.Version + 1
			continue
		}
		d.log.Info("the topology is as an operator has changed it last, and not as the configuration has it", slog.Uint64("version", o.Version))
		if d.cfg.Merge == nil {
			o.Agents = agentsIn(o.Graph, o.Agents)
		}
		d.operator = o
	}
	return nil
}

// restoreMap returns the map to begin with: where there is discovery the last that was in
// effect, or it would be found anew while trees run on it.
func (d *Daemon) restoreMap(records []manager.Record) (Operator, error) {
	for i := range records {
		if records[i].Kind == manager.MapRecord && d.cfg.Merge != nil {
			o, _, err := decodeOperator(records[i].Kept)
			if err != nil {
				return o, fmt.Errorf("the store's map: %w", err)
			}
			o.Down = d.operator.Down
			return o, nil
		}
	}
	return d.operator, nil
}

// keepMaps stores the map in effect whenever it is another, the last of several.
func (d *Daemon) keepMaps(ctx context.Context) {
	for {
		var o Operator
		select {
		case o = <-d.maps:
		case <-ctx.Done():
			return
		}
		kept, err := encodeOperator(&o, nil)
		if err == nil {
			_, err = d.request(ctx, func(req uint64) manager.Input {
				return manager.Keep{Req: req, Kind: manager.MapRecord, Kept: kept}
			})
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("the map is not stored", slog.Any("error", err))
		}
	}
}
