package peers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// peer is an implementation beside Tributary.
type peer struct {
	name     string   // as in --peers
	packages []string // of Debian
	needs    []string // programs, and files by their paths
	compiler []string // and its arguments before the source
	source   string
	after    []string // arguments after it
	jobs     []job
}

// job is how a peer is started: all its ranks together, once for a fabric.
type job struct {
	name     string
	variants []string // what its ranks can be asked to do; one word each
	mca      []string // settings of Open MPI, name and value
}

// contestant returns the name of a job's variant in tables.
func (j *job) contestant(variant string) string {
	if len(j.variants) == 1 {
		return j.name
	}
	return j.name + "-" + variant
}

// only is the variant of a job that has but one.
const only = "default"

// tuned has Open MPI use one of its algorithms, by the number that ompi_info
// --param coll tuned lists for it.
func tuned(algorithm string) []string {
	return []string{"coll_tuned_use_dynamic_rules", "1", "coll_tuned_allreduce_algorithm", algorithm}
}

const (
	openMPI = "openmpi"
	mpich   = "mpich"
	gloo    = "gloo"
)

var all = []peer{
	{
		name: openMPI, packages: []string{"openmpi-bin", "libopenmpi-dev", "gcc"},
		needs:    []string{"mpirun.openmpi", "mpicc.openmpi"},
		compiler: []string{"mpicc.openmpi", "-O2"}, source: mpiSource,
		jobs: []job{
			{name: "openmpi-default", variants: []string{only}},
			{name: "openmpi-ring", variants: []string{only}, mca: tuned("4")},
			{name: "openmpi-rabenseifner", variants: []string{only}, mca: tuned("6")},
		},
	},
	{
		name: mpich, packages: []string{"mpich", "libmpich-dev", "gcc"},
		needs:    []string{"mpiexec.hydra", "mpicc.mpich"},
		compiler: []string{"mpicc.mpich", "-O2"}, source: mpiSource,
		jobs: []job{{name: "mpich", variants: []string{only}}},
	},
	{
		name: gloo, packages: []string{"libgloo-dev", "g++"},
		needs:    []string{"g++", "/usr/include/gloo/allreduce.h"},
		compiler: []string{"g++", "-O2", "-std=c++17"}, source: glooSource, after: []string{"-lgloo", "-lpthread"},
		jobs: []job{{name: "gloo", variants: []string{"ring", "bcube"}}},
	},
}

// Names returns the names of all peers.
func Names() (names []string) {
	for i := range all {
		names = append(names, all[i].name)
	}
	return names
}

// find returns the peers of these names.
func find(names []string) (found []*peer, err error) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(p peer) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: peer %q; there are %s", ErrConfig, name, strings.Join(Names(), ", "))
		}
		if !slices.Contains(found, &all[i]) {
			found = append(found, &all[i])
		}
	}
	return found, nil
}

// missing reports what a peer lacks on this machine, and what brings it; nil:
// nothing. Has reports whether there is a program or file.
func (p *peer) missing(has func(string) bool) error {
	var lacking []string
	for _, need := range p.needs {
		if !has(need) {
			lacking = append(lacking, need)
		}
	}
	if lacking == nil {
		return nil
	}
	return fmt.Errorf("%w: %s lacks %s; on Debian: apt install %s", ErrMissing, p.name,
		strings.Join(lacking, " and "), strings.Join(p.packages, " "))
}

// installed reports whether there is a program, or a file at a path.
func installed(what string) bool {
	if filepath.IsAbs(what) {
		_, err := os.Stat(what)
		return err == nil
	}
	_, err := exec.LookPath(what)
	return err == nil
}

// compile makes the peer's program of the sources in a directory, and returns
// its path.
func (p *peer) compile(dir string) (string, error) {
	program := filepath.Join(dir, p.name)
	args := slices.Concat(p.compiler[1:], []string{"-o", program, filepath.Join(dir, p.source)}, p.after)
	if said, err := exec.Command(p.compiler[0], args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the program of %s: %w", p.name, errors.Join(err, errors.New(strings.TrimSpace(string(said)))))
	}
	return program, nil
}
