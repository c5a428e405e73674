// Package importgraph checks the rules of imports: floors, forbidden imports, and
// purity. A folder stands on a floor, and packages import from their own folder and
// from lower floors only; some imports are forbidden to some packages; pure packages
// use no clock and start no goroutine.
//
// It reads source files themselves, whatever their build constraints, so that
// a rule holds on every platform and with every build tag. Tests may look
// upward, since nothing can import them; the rest of the rules reports for each
// whether it binds tests, too.
package importgraph
