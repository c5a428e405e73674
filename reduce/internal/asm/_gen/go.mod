// The generator of the kernels, a module of its own so that the main module
// does not depend on avo.
module github.com/tributary-fabric/tributary/reduce/internal/asm/_gen

go 1.26

require github.com/mmcloughlin/avo v0.6.0

// Newer than avo asks for: that x/tools does not build with this Go.
require (
	golang.org/x/mod v0.31.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/tools v0.40.0 // indirect
)
