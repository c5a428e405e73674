// Command collbench times collective operations: in one process (embedded), as
// one member on a live fabric (run), or on a fabric of network namespaces that
// it builds (fabric). It writes CSV to standard output, and ends with status 1
// if a result was wrong.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "collbench:", oneLine(err))
		os.Exit(1) // the deferred stop would only restore signals
	}
}

// oneLine joins the lines of an error, of which some have several.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
