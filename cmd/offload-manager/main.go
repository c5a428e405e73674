// Command offload-manager is the manager of a fabric's collection trees, and
// what operators and schedulers ask it by: see "offload-manager --help".
package main

import (
	"os"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func main() {
	os.Exit(process.Main("offload-manager", newRoot()))
}
