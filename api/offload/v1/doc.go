// Package offloadv1 is the control plane's gRPC interface, version 1. The Manager
// service is for schedulers, operators and members of groups, the SwitchAgent service
// for a manager. The .proto files beside it are the reference; all else is generated
// from them.
//
// Inside Tributary, only internal/driver/rpc uses these types: it turns them into the
// plain structs of the cores. Programs in other languages use the .proto files;
// every server also offers gRPC reflection and the standard health service.
//
// Version 1 only grows: fields and methods are added, never changed or taken
// away. Receivers ignore fields that they do not know.
package offloadv1

//go:generate sh generate.sh
