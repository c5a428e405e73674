// Command collbench times collective operations. It measures in one process (embedded),
// as one member on a live fabric (run), on a fabric of network namespaces that it
// builds (fabric), there also beside Open MPI, MPICH and Gloo (peers), and on many
// groups of the same hosts at once (groups). It writes CSV to standard output, and ends
// with status 1 if a result was wrong. From what it has measured it makes tables
// (report). It measures how trees are planned (plan), too.
package main

import (
	"os"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func main() {
	os.Exit(process.Main("collbench", newRoot()))
}
