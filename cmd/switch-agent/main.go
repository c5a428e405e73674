// Command switch-agent is the agent of one switch: it reserves what collection
// trees need of it, and reduces what comes up them.
package main

import (
	"context"
	"os"

	"github.com/tributary-fabric/tributary/cmd/internal/process"
)

func main() {
	os.Exit(process.Main("switch-agent", func(ctx context.Context) error { return newRoot().ExecuteContext(ctx) }))
}
