package gnmi

import (
	"slices"
	"sync"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/gnmi/message"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// The origins of paths: the trees of data that there are.
const (
	OriginOpenConfig = "openconfig"
	OriginTributary  = "tributary" // the module of that name; its paths begin with /tributary all the same
)

// originOf returns the origin of a path of the schema.
func originOf(p openconfig.Path) string {
	if len(p) > 0 && p[0].Name == OriginTributary {
		return OriginTributary
	}
	return OriginOpenConfig
}

// requested is what a message asks for.
type requested struct {
	path  openconfig.Path   // as it was asked for
	paths []openconfig.Path // that it stands for, within its origin
}

// reader reads the paths of one request.
type reader struct {
	prefix  *pb.Path
	origins bool // they are in the paths, and not in the prefix
}

// read reads a path and what it stands for. An error has its gRPC status.
func (r *reader) read(m *pb.Path) (requested, error) {
	var q requested
	origin := r.prefix.GetOrigin()
	if m.GetOrigin() != "" {
		if origin != "" {
			return q, status.Errorf(codes.InvalidArgument, "origin %.100q in a path, and %.100q in the prefix: one of them only", m.GetOrigin(), origin)
		}
		if len(r.prefix.GetElem()) > 0 {
			return q, status.Errorf(codes.InvalidArgument, "origin %.100q in a path, and elements in the prefix: the prefix has to have the origin", m.GetOrigin())
		}
		origin, r.origins = m.GetOrigin(), true
	}
	if m.GetTarget() != "" {
		return q, status.Errorf(codes.InvalidArgument, "target %.100q in a path: it belongs into the prefix", m.GetTarget())
	}
	var err error
	if q.path, err = message.Path(r.prefix, m); err != nil {
		return q, status.Error(codes.InvalidArgument, err.Error())
	}
	switch origin {
	case "":
		q.paths = []openconfig.Path{q.path}
	case OriginOpenConfig, OriginTributary:
		q.paths = within(origin, q.path)
	default:
		return q, status.Errorf(codes.Unimplemented, "origin %.100q is not served: %s and %s are", origin, OriginOpenConfig, OriginTributary)
	}
	q.paths = slices.DeleteFunc(q.paths, func(p openconfig.Path) bool { return !openconfig.Selects(p) })
	if len(q.paths) == 0 {
		return q, status.Errorf(codes.Unimplemented, "path %s is not served", q.path)
	}
	return q, nil
}

// roots are the first elements of all paths, by their origin.
var roots = func() map[string][]string {
	all := map[string][]string{}
	for l := range openconfig.Schema() {
		o := originOf(l.Path)
		if name := l.Path[0].Name; !slices.Contains(all[o], name) {
			all[o] = append(all[o], name)
		}
	}
	return all
}()

// within returns what a path selects of one origin.
func within(origin string, p openconfig.Path) (all []openconfig.Path) {
	for len(p) > 1 && p[0].Name == openconfig.AnyDepth && p[1].Name == openconfig.AnyDepth {
		p = p[1:] // which means the same
	}
	if len(p) > 0 && p[0].Name == openconfig.AnyDepth {
		all = within(origin, p[1:]) // it stands for no element
	}
	for _, name := range roots[origin] {
		root := openconfig.Elem{Name: name}
		switch {
		case len(p) == 0:
			all = append(all, openconfig.Path{root})
		case p[0].Name == openconfig.AnyDepth:
			all = append(all, append(openconfig.Path{root}, p...))
		case p[0].Matches(&root):
			all = append(all, append(openconfig.Path{root}, p[1:]...))
		}
	}
	return all
}

// prefix returns the prefix of an answer.
func (r *reader) answer() *pb.Path {
	if r.prefix.GetTarget() == "" && r.prefix.GetOrigin() == "" {
		return nil
	}
	return &pb.Path{Target: r.prefix.GetTarget(), Origin: r.prefix.GetOrigin()}
}

// path writes a path of an answer.
func (r *reader) path(p openconfig.Path) *pb.Path {
	m := message.OfPath(p)
	if r.origins {
		m.Origin = originOf(p)
	}
	return m
}

// written has the paths of leaves, which all streams share: to make one costs more than
// the rest of an update. They are read only.
type written struct {
	mu sync.RWMutex
	of map[string]*pb.Path
}

// maxWritten bounds the paths that are kept: those of some hundred interfaces.
const maxWritten = 8192

func (w *written) path(name string, p openconfig.Path) *pb.Path {
	w.mu.RLock()
	m := w.of[name]
	w.mu.RUnlock()
	if m != nil {
		return m
	}
	m = message.OfPath(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil || len(w.of) >= maxWritten {
		w.of = map[string]*pb.Path{}
	}
	w.of[name] = m
	return m
}
