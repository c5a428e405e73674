// Command switch-agent is the agent of one switch: it reserves what collection
// trees need of it, and reduces what comes up them.
package main

import (
	"os"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func main() {
	os.Exit(process.Main("switch-agent", newRoot()))
}
