//go:build !amd64 || noasm

package reduce

// instructionSets returns none: here, kernels are in Go.
func instructionSets() []*instructions { return nil }
