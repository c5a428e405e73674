// Package admission bounds the connections that a listener takes: in all, and of one source.
package admission
