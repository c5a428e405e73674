// Package admin serves what people and their tools watch a process by: its
// metrics for Prometheus, its profiles, and whether it is well, over HTTP on an
// address of its own.
//
//	/metrics       what the collectors count, the Go runtime, and the process
//	/healthz       200 if the process is well, 503 and why if not
//	/debug/pprof/  profiles, as of net/http/pprof
//	/members       of a process in a zone: its view, as JSON
//
// There is neither encryption nor a question who asks, and profiles report much:
// it serves on loopback addresses unless it is configured otherwise explicitly.
package admin
