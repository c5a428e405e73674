// Package importgraph holds the rules about who may import whom, and checks
// them: every folder stands on a floor, and packages import from their own folder
// and from lower ones only; some imports are forbidden to some packages; and pure
// packages neither look at a clock nor start goroutines.
//
// It reads source files themselves, whatever their build constraints, so that
// a rule holds on every platform and with every build tag. Tests may look
// upward, since nothing can import them; the rest of the rules reports for each
// whether it binds tests, too.
package importgraph
