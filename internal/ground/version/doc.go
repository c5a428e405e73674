// Package version reports which version of Tributary a process is. It is what the build
// recorded, or what the linker was given.
//
//	go build -ldflags "-X github.com/tributary-fabric/tributary/internal/ground/version.reported=v1.2.3" ./cmd/...
package version
