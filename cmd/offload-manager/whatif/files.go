package whatif

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/pathsel"
)

// maxFile bounds what is read of a file, in bytes.
const maxFile = 64 << 20

// read decodes a YAML file strictly.
func read(path string, to any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return fmt.Errorf("%s: more than %d bytes: %w", path, maxFile, ErrConfig)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(to); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return fmt.Errorf("%s: %w: %w", path, err, ErrConfig)
	}
	return nil
}

// ReadGroups reads a file of groups: an object with the list "groups".
func ReadGroups(path string) ([]Group, error) {
	var file struct {
		Groups []Group `yaml:"groups"`
	}
	if err := read(path, &file); err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	names := map[string]bool{}
	for i, g := range file.Groups {
		if g.Name == "" || names[g.Name] || len(g.Hosts) == 0 {
			return nil, fmt.Errorf("read groups: %s: groups[%d] %q has no name or no hosts, or a name that another has: %w", path, i, g.Name, ErrConfig)
		}
		names[g.Name] = true
	}
	return file.Groups, nil
}

// ReadModel reads a cost model; what the file does not say is as in
// pathsel.DefaultModel.
func ReadModel(path string) (pathsel.Model, error) {
	m, err := settings.ReadModelFile(path)
	if err != nil {
		return pathsel.Model{}, fmt.Errorf("read model: %w: %w", err, ErrConfig)
	}
	return m, nil
}

// measuredRow is a measurement as it is written.
type measuredRow struct {
	Transport string `yaml:"transport"` // switches or hosts
	Function  string `yaml:"function"`
	Members   int    `yaml:"members"`
	Depth     int    `yaml:"depth"`    // links from a member to the root
	Children  int    `yaml:"children"` // the most that a switch has
	Bytes     int64  `yaml:"bytes"`
	Bandwidth int64  `yaml:"bandwidth"` // bit/s; 0: the model's
	// Of the slowest switch or host in bytes a second of one child, where it is known;
	// 0: to be fitted.
	Speed int64         `yaml:"speed"`
	Took  time.Duration `yaml:"took"`
}

// FitFile fits a model, beginning with base, to a file of measurements: an object
// with the list "rows".
func FitFile(path string, base pathsel.Model) (pathsel.Fitted, error) {
	var file struct {
		Rows []measuredRow `yaml:"rows"`
	}
	if err := read(path, &file); err != nil {
		return pathsel.Fitted{}, fmt.Errorf("read measurements: %w", err)
	}
	var rows []pathsel.Measured
	var hops []int
	for i, r := range file.Rows {
		m := pathsel.Measured{OverHosts: r.Transport == "hosts", Took: r.Took, Trip: pathsel.Trip{
			Members: r.Members, Children: r.Children, Bytes: r.Bytes, Bandwidth: r.Bandwidth,
			Latency: time.Duration(r.Depth) * (base.Hop + base.SwitchHop), Collective: pathsel.Allreduce,
		}}
		switch {
		case r.Speed < 0:
			return pathsel.Fitted{}, fmt.Errorf("%s: rows[%d]: speed %d is negative: %w", path, i, r.Speed, ErrConfig)
		case m.OverHosts:
			m.HostReduce = float64(r.Speed)
		case r.Children > 0:
			m.Reduce = float64(r.Speed) / float64(r.Children)
		}
		if m.Bandwidth == 0 {
			m.Bandwidth = base.Bandwidth
		}
		if collective, err := pathsel.ParseCollective(r.Function); err == nil {
			m.Collective = collective
		}
		if r.Transport != "hosts" && r.Transport != "switches" {
			return pathsel.Fitted{}, fmt.Errorf("%s: rows[%d]: transport %q is neither switches nor hosts: %w", path, i, r.Transport, ErrConfig)
		}
		rows, hops = append(rows, m), append(hops, r.Depth)
	}
	f, err := pathsel.Fit(base, hops, rows)
	if err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
