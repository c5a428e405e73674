// Package rpc carries the control plane over gRPC. It is the only place that
// knows api/offload/v1 and gRPC's status codes; on its other side are the plain
// structs of internal/core/agent and internal/core/manager, and Go errors.
//
// [Agent] and [Manager] are the two services as Go interfaces. A daemon
// implements one and has it served by [Serve]; a client that [DialAgent] or
// [DialManager] returns implements the same, so that a caller does not see
// where the other side is.
//
// # Trust
//
// With TLS, a caller is whom its certificate names ([CallerOf]), and may call
// what the policy allows its role; docs/trust.md has it as a table. Without TLS
// everybody may call everything, and [Listen] opens loopback addresses only
// unless it is configured otherwise.
//
// # Errors
//
// An error keeps its meaning across the wire: errors.Is finds the same sentinel
// on the client's side that the server's side returned, and errors.As finds the
// same *agent.Refusal or *manager.Refusal, with resource, switch, what is free
// and who holds the rest. What gRPC itself has to say is ErrUnavailable,
// ErrUnsupported, ErrMalformed, or the context's errors.
package rpc
