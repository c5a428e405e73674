// Package process is what the daemons' commands share: their life from the start
// to a signal, and their certificates.
package process
