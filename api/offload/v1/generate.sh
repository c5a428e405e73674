#!/bin/sh
# Makes the Go code from the .proto files: protoc (Debian: protobuf-compiler, libprotobuf-dev)
# with the plugins that go.mod names as tools.
set -eu
cd "$(dirname "$0")/../../.."
protoc --proto_path=. \
	--plugin=protoc-gen-go="$(go tool -n protoc-gen-go)" \
	--plugin=protoc-gen-go-grpc="$(go tool -n protoc-gen-go-grpc)" \
	--go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative \
	api/offload/v1/*.proto
