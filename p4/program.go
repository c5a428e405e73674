package p4

import _ "embed" // the compiled program

//go:generate go test -run ^TestGenerated$ ./internal/generate -update

//go:embed tributary.json
var deviceConfig []byte

//go:embed tributary.p4info.txtpb
var info string

// DeviceConfig returns the program as bmv2 takes it, in JSON. It must not be
// changed.
func DeviceConfig() []byte { return deviceConfig }

// Info returns the program's P4Info as a text protobuf.
func Info() string { return info }

// TableOrder returns the tables that are written, in the order in which they may
// be: an entry refers to none of a later table. A packet that finds its tree's
// entry finds all others, too.
func TableOrder() []uint32 {
	return []uint32{TablePorts, TableRoutes, TableRewrite, TableNeighbours, TableEpochs, TableTrees}
}
