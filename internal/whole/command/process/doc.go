// Package process has what the daemons' commands share: signals and certificates.
package process
