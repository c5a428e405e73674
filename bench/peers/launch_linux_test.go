package peers

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestQuoted has a shell take words for what they are.
func TestQuoted(t *testing.T) {
	words := []string{"plain", "two words", "it's", `"$HOME" \ *`, "", "-x", "'"}
	out, err := exec.Command("sh", "-c", `for w in `+quoted(words)+`; do printf '%s\n' "$w"; done`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); !slices.Equal(got, words) {
		t.Errorf("%q, want %q", got, words)
	}
}

func TestCommands(t *testing.T) {
	addresses := []string{"10.0.0.1", "10.0.0.3"}
	ring := &all[0].jobs[1]
	got := strings.Join(openMPICommand(ring, addresses, 1, "port1", "/d/rsh"), " ")
	for _, part := range []string{
		"mpirun.openmpi ", "-np 2", "-H 10.0.0.1:1,10.0.0.3:1", "--mca plm_rsh_agent /d/rsh", "--mca btl tcp,self",
		"--mca btl_tcp_if_include port1", "--mca coll_tuned_allreduce_algorithm 4",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in %s", part, got)
		}
	}
	if got := strings.Join(openMPICommand(&all[0].jobs[0], addresses, 1, "port1", "/d/rsh"), " "); strings.Contains(got, "algorithm") {
		t.Errorf("its own choice is none: %s", got)
	}
	if got := strings.Join(openMPICommand(ring, addresses, 4, "port1", "/d/rsh"), " "); !strings.Contains(got, "-np "+strconv.Itoa(4*len(addresses))+" ") || !strings.Contains(got, ":4") || !strings.Contains(got, "vader") {
		t.Error(got)
	}
	got = strings.Join(mpichCommand(nil, addresses, 1, "port1", "/d/rsh"), " ")
	for _, part := range []string{"mpiexec.hydra ", "-launcher-exec /d/rsh", "-iface port1", "-hosts 10.0.0.1,10.0.0.3", "-n 2"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in %s", part, got)
		}
	}
}
