// Package p4 is the P4 program of Tributary, and what a control plane has to
// write into it.
package p4
