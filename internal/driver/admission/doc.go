// Package admission bounds the connections that a listener takes: in all, of one source, and of
// those that have not shown yet who they are.
package admission
