// Package soft is the data plane in software: every tree has a goroutine that
// owns a socket and the aggregate core behind it. What a tree cannot carry on
// with, such as a socket that fails, ends its epochs.
package soft
