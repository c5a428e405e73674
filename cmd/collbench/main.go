// Command collbench times collective operations: in one process (embedded), as
// one member on a live fabric (run), or on a fabric of network namespaces that
// it builds (fabric), there also beside Open MPI, MPICH and Gloo (peers). It
// writes CSV to standard output, and ends with status 1 if a result was wrong.
// From what it has measured it makes tables (report) and flame graphs (flame).
package main

import (
	"context"
	"os"

	"github.com/tributary-fabric/tributary/cmd/internal/process"
)

func main() {
	os.Exit(process.Main("collbench", func(ctx context.Context) error { return newRoot().ExecuteContext(ctx) }))
}
