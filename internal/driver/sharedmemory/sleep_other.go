//go:build !linux

package sharedmemory

import "runtime"

const look = 0 // for which who sleeps polls before

func yield() { runtime.Gosched() }
