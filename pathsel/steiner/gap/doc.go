// Package gap measures how far Solve's trees are from the best: it has a table
// of problems of a thousand nodes, generated from fixed seeds, and runs them.
//
// The problems are random sparse graphs, as those of OR-Library, and grids,
// with costs of 1 to 10, of 1 to 100 and all equal. The gaps are those to the
// bounds that Solve finds itself: nothing is taken from elsewhere, but for the
// published optima of instances, where a caller has them.
package gap
