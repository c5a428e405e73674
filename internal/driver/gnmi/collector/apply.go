package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// maxText is the longest value that is kept, in bytes.
const maxText = 1024

// errValue is of a value that no leaf has.
var errValue = errors.New("a value that no leaf has")

// take applies a notification. The error is that there was too much that is malformed.
func (s *stream) take(n *pb.Notification) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range n.GetDelete() {
		p, err := pathOf(n.GetPrefix(), d)
		if err != nil {
			if err := s.mistake(err); err != nil {
				return err
			}
			continue
		}
		s.device.DeleteAt(p)
	}
	for _, u := range n.GetUpdate() {
		if err := s.update(n.GetPrefix(), u); err != nil {
			if err := s.mistake(err); err != nil {
				return err
			}
		}
	}
	s.wake()
	return nil
}

// mistake counts what is malformed. The error is that it is too much.
func (s *stream) mistake(err error) error {
	s.cfg.Counts.Malformed.Add(1)
	text := printable.Text(fmt.Sprintf("%.200s", err.Error()))
	if s.mistakes++; s.mistakes == 1 {
		s.cfg.Log.Warn("malformed update, dropped", slog.String("target", s.cfg.Address), slog.String("error", text))
	}
	if s.mistakes >= s.cfg.Limits.Mistakes {
		return fmt.Errorf("%w: %d updates, the last: %s", ErrMalformed, s.mistakes, text)
	}
	return nil
}

func (s *stream) update(prefix *pb.Path, u *pb.Update) error {
	p, err := pathOf(prefix, u.GetPath())
	if err != nil {
		return err
	}
	var text []byte
	switch v := u.GetVal().GetValue().(type) {
	case *pb.TypedValue_JsonVal:
		text = v.JsonVal
	case *pb.TypedValue_JsonIetfVal:
		text = v.JsonIetfVal
	default:
		v2, err := valueOf(u.GetVal())
		if err != nil {
			return fmt.Errorf("%w at %s", err, p)
		}
		return s.set(p, v2)
	}
	var x any
	if err := json.Unmarshal(text, &x); err != nil {
		return fmt.Errorf("malformed JSON at %s: %w", p, err)
	}
	return s.flatten(p, x)
}

// flatten applies JSON at a path: that of a leaf, or of all that is below a node.
func (s *stream) flatten(p openconfig.Path, x any) error {
	var errs []error
	switch x := x.(type) {
	case map[string]any:
		for name, y := range x {
			if err := s.flatten(append(p[:len(p):len(p)], openconfig.Elem{Name: openconfig.Unqualified(name)}), y); err != nil {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	case []any:
		if keys := keysAt(p); keys != nil {
			for _, y := range x {
				if err := s.entry(p, keys, y); err != nil {
					errs = append(errs, err)
				}
			}
			return errors.Join(errs...)
		}
	}
	v, err := scalar(x)
	if err != nil {
		if !s.wanted[names(p)] {
			return nil
		}
		return fmt.Errorf("%w at %s", err, p)
	}
	return s.set(p, v)
}

// entry applies an entry of a list.
func (s *stream) entry(p openconfig.Path, keys []openconfig.Key, x any) error {
	fields, _ := x.(map[string]any)
	e := openconfig.Elem{Name: p[len(p)-1].Name}
	for _, k := range keys {
		v, err := scalar(find(fields, k.Name))
		if err != nil {
			return fmt.Errorf("an entry of %s without its key %s", p, k.Name)
		}
		e.Keys = append(e.Keys, openconfig.Key{Name: k.Name, Value: v.String()})
	}
	at := append(p[:len(p)-1:len(p)-1], e)
	if err := at.Check(); err != nil {
		return err
	}
	return s.flatten(at, x)
}

func find(fields map[string]any, name string) any {
	for n, x := range fields {
		if openconfig.Unqualified(n) == name {
			return x
		}
	}
	return nil
}

// keysAt returns the keys of the list that a path without its last keys is of; nil: it
// is none.
func keysAt(p openconfig.Path) []openconfig.Key {
	if len(p) == 0 || len(p[len(p)-1].Keys) > 0 {
		return nil
	}
	at := names(p)
	for l := range openconfig.Schema() {
		if len(l.Path) >= len(p) && names(l.Path[:len(p)]) == at {
			return l.Path[len(p)-1].Keys
		}
	}
	return nil
}

func scalar(x any) (openconfig.Value, error) {
	switch x := x.(type) {
	case string:
		return openconfig.Text(x), nil
	case bool:
		return openconfig.Of(x), nil
	case float64:
		if n := uint64(x); x >= 0 && x < 1<<63 && float64(n) == x {
			return openconfig.Number(n), nil
		}
	case []any:
		list := make([]string, 0, len(x))
		for _, e := range x {
			text, ok := e.(string)
			if !ok {
				return openconfig.Value{}, errValue
			}
			list = append(list, text)
		}
		return openconfig.Texts(list), nil
	}
	return openconfig.Value{}, errValue
}

func valueOf(m *pb.TypedValue) (openconfig.Value, error) {
	switch v := m.GetValue().(type) {
	case *pb.TypedValue_StringVal:
		return openconfig.Text(v.StringVal), nil
	case *pb.TypedValue_AsciiVal:
		return openconfig.Text(v.AsciiVal), nil
	case *pb.TypedValue_BoolVal:
		return openconfig.Of(v.BoolVal), nil
	case *pb.TypedValue_UintVal:
		return openconfig.Number(v.UintVal), nil
	case *pb.TypedValue_IntVal:
		if v.IntVal >= 0 {
			return openconfig.Number(uint64(v.IntVal)), nil
		}
	case *pb.TypedValue_LeaflistVal:
		var list []string
		for _, e := range v.LeaflistVal.GetElement() {
			x, err := valueOf(e)
			if err != nil {
				return x, err
			}
			list = append(list, x.String())
		}
		return openconfig.Texts(list), nil
	}
	return openconfig.Value{}, errValue
}

// set applies one leaf, if it is wanted and within the limits.
func (s *stream) set(p openconfig.Path, v openconfig.Value) error {
	switch {
	case !s.wanted[names(p)]:
		s.cfg.Counts.Ignored.Add(1)
		return nil
	case v.Size() > maxText || !s.fits(p):
		s.cfg.Counts.Beyond.Add(1)
		return nil
	}
	known, err := s.device.SetAt(p, v)
	if err == nil && known {
		s.cfg.Counts.Updates.Add(1)
	}
	return err
}

// fits reports whether a leaf is of an entry of a list that is there already, or for which
// there is room.
func (s *stream) fits(p openconfig.Path) bool {
	for i := range p {
		name, ok := p[i].Get("name")
		if !ok || p[i].Name != "interface" {
			continue
		}
		at := s.device.Interfaces[name]
		if at == nil {
			return len(s.device.Interfaces) < s.cfg.Limits.Ports
		}
		for _, e := range p[i+1:] {
			id, isNeighbor := e.Get("id")
			_, isAddress := e.Get("ip")
			most := s.cfg.Limits.Neighbors
			switch {
			case isAddress:
				return len(at.Addresses) < most || hasAddress(at, &e)
			case isNeighbor && len(at.Neighbors) >= most && !hasNeighbor(at, id):
				return false
			case isNeighbor:
				return !isFull(at, id, &p[len(p)-2], most)
			}
		}
		return true
	}
	return true
}

func hasAddress(i *openconfig.Interface, e *openconfig.Elem) bool {
	ip, _ := e.Get("ip")
	for _, a := range i.Addresses {
		if a.Addr().String() == ip {
			return true
		}
	}
	return false
}

func hasNeighbor(i *openconfig.Interface, id string) bool {
	for n := range i.Neighbors {
		if i.Neighbors[n].ID == id {
			return true
		}
	}
	return false
}

// isFull reports whether the lists of a neighbour have no more room.
func isFull(i *openconfig.Interface, id string, e *openconfig.Elem, most int) bool {
	for n := range i.Neighbors {
		if x := &i.Neighbors[n]; x.ID == id && len(e.Keys) > 0 && e.Name != "neighbor" {
			return len(x.Capabilities) >= most || len(x.Management) >= most
		}
	}
	return false
}
