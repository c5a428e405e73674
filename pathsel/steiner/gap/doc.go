// Package gap measures how far Solve's trees are from the best: it has a table
// of problems of a thousand nodes, generated from fixed seeds, and runs them.
//
// The problems are random sparse graphs, as those of OR-Library, and grids,
// with costs of 1 to 10, of 1 to 100 and all equal. In grids of equal costs
// Solve's dual bound stays several percent below the optimum, whatever tree is
// found; there the table goes by a stronger bound, which was computed once and
// is written in floors.go.
package gap
