package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by every error about what a demonstration was asked for.
var ErrConfig = errors.New("cannot run this demonstration")

// ErrWrong reports that an operation gave a wrong result.
var ErrWrong = errors.New("a result is wrong")

// Config is what is demonstrated.
type Config struct {
	Fabric   string // a specification or a file, as topology.Open takes it
	Function reduce.Function
	Type     reduce.Type
	Bytes    int    // of each member's vector
	Seed     uint64 // of the vectors' elements

	Progress func(line string) // reports what happens; nil: not at all
}

// DefaultConfig returns a float32 sum of 4 MiB over a fat-tree of 16 hosts.
func DefaultConfig() Config {
	return Config{Fabric: "fat-tree:4", Function: reduce.Sum, Type: reduce.Float32, Bytes: 4 << 20, Seed: 1}
}

// Validate reports what is wrong with c, and what would be possible. It does
// not look at the fabric.
func (c Config) Validate() error {
	size := reduce.ElementSize(c.Function, c.Type)
	switch {
	case c.Type == reduce.Block32:
		return fmt.Errorf("%w: %s is a form of float32 and no type of vectors", ErrConfig, c.Type)
	case !reduce.Defined(c.Function, c.Type):
		return fmt.Errorf("%w: %s is not defined on %s, but on %s", ErrConfig, c.Function, c.Type, typesOf(c.Function))
	case c.Bytes <= 0:
		return fmt.Errorf("%w: vectors of %d bytes; %s of %s takes a multiple of %d, from %d on", ErrConfig, c.Bytes, c.Function, c.Type, size, size)
	case c.Bytes%size != 0:
		return fmt.Errorf("%w: vectors of %d bytes are not a multiple of the %d of an element (%s of %s); %d would be", ErrConfig,
			c.Bytes, size, c.Function, c.Type, c.Bytes+size-c.Bytes%size)
	case c.Bytes/size > math.MaxUint32:
		return fmt.Errorf("%w: vectors of %d elements; the most are %d", ErrConfig, c.Bytes/size, uint32(math.MaxUint32))
	}
	return nil
}

// Types are the types of which vectors can be.
func Types() []reduce.Type {
	return (topology.AllTypes() &^ topology.TypesOf(reduce.Block32)).List()
}

// typesOf lists the types on which f is defined.
func typesOf(f reduce.Function) string {
	var names []string
	for _, t := range Types() {
		if reduce.Defined(f, t) {
			names = append(names, t.String())
		}
	}
	if names == nil {
		return "no type"
	}
	return strings.Join(names, ", ")
}

// open reads or generates the fabric.
func (c Config) open() (*topology.Graph, error) {
	g, err := topology.Open(c.Fabric)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: fabric %q is neither a file nor one of %s", ErrConfig, c.Fabric, specs())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if g.Hosts() < 2 {
		return nil, fmt.Errorf("%w: fabric %q has %d hosts, and it takes 2", ErrConfig, c.Fabric, g.Hosts())
	}
	return g, nil
}

// specs lists the fabrics that need no file.
func specs() string {
	var names []string
	for line := range strings.Lines(topology.Specs) {
		names = append(names, strings.Fields(line)[0])
	}
	return strings.Join(names, ", ")
}
