// Package admin serves a process's metrics, profiles and health over HTTP. It has an
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
