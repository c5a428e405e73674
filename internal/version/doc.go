// Package version tells of which version of Tributary a process is: what the
// build recorded, or what the linker was told.
//
//	go build -ldflags "-X github.com/tributary-fabric/tributary/internal/version.told=v1.2.3" ./cmd/...
package version
