// Command offload-manager is the offload manager and its command-line client. See
// "offload-manager --help".
package main

import (
	"os"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func main() {
	os.Exit(process.Main("offload-manager", newRoot()))
}
