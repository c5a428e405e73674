// Benchmarks beside other libraries, a module of its own so that the main
// module does not depend on them.
module github.com/tributary-fabric/tributary/reduce/internal/bench

go 1.26

require (
	github.com/tributary-fabric/tributary v0.0.0
	gonum.org/v1/gonum v0.17.0
)

require golang.org/x/sys v0.40.0 // indirect

replace github.com/tributary-fabric/tributary => ../../..
