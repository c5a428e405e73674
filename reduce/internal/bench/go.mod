// Benchmarks beside other libraries. In a module of its own, one more to
// compare with is no dependency of the main module.
module github.com/tributary-fabric/tributary/reduce/internal/bench

go 1.26

require (
	github.com/tributary-fabric/tributary v0.0.0
	gonum.org/v1/gonum v0.17.0
)

require golang.org/x/sys v0.40.0 // indirect

replace github.com/tributary-fabric/tributary => ../../..
