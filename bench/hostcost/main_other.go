//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "hostcost: it measures Linux's system calls")
	os.Exit(1)
}
