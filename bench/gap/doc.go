// Package gap measures how far Steiner trees are from the optimum. It has a table of
// problems of a thousand nodes, generated from fixed seeds, and runs them.
//
// The problems are random sparse graphs, as those of OR-Library, and grids,
// with costs of 1 to 10, of 1 to 100 and all equal. Beside them are problems like
// series of SteinLib and tracks of PACE 2018, generated too. The gaps are those to
// the optimum, which the exact method finds, to bounds that Solve proves, or, of
// hypercubes, to the least cost that is known.
package gap
