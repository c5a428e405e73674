// Package admin serves a process's metrics and health over HTTP, at an address of its own,
// and profiles at another one.
//
//	/metrics  what the collectors count, the Go runtime, and the process
//	/healthz  200 if the process is well, 503 and why if not
//	/members  of a process in a zone: its view, as JSON
//
//	/debug/pprof/  profiles, as of net/http/pprof, where they are configured
//
// There is neither encryption nor a question who asks: it serves on loopback addresses
// unless it is configured otherwise explicitly. Profiles have secrets out of memory, and take
// processor time: they are on loopback always.
package admin
