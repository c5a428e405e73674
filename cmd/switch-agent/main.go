// Command switch-agent is the agent of one switch. It reserves slots for collection
// trees and reduces their packets.
package main

import (
	"os"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func main() {
	os.Exit(process.Main("switch-agent", newRoot()))
}
