// Command offload-manager is the manager of a fabric's collection trees. For
// now it demonstrates the main job: see "offload-manager demo --help".
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "offload-manager:", oneLine(err))
		os.Exit(1) // the deferred stop would only restore signals
	}
}
