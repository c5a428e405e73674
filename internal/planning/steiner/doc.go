// Package steiner finds cheap Steiner trees in weighted graphs. The Steiner tree
// problem in graphs is NP-hard. The package knows nodes, edges and costs only, and nothing of
// fabrics.
//
// # Problem
//
// A Problem is a Graph in compressed adjacency arrays, a cost for every edge,
// the terminals that the tree must span, and, if wanted, a limit on the number
// of tree edges at each node. The limit says all that a caller may want to
// forbid: a node of limit 0 is not used, one of limit 1 may only be a leaf (a
// host), one of limit 2 may forward but not branch, one of a larger limit may
// branch that far. Nodes of a limit are hard to serve in the worst case, even
// to find any tree at all; what Solve says when it finds none is ErrNoTree,
// and not that there is none.
//
// # Method
//
// Solve takes, in this order, what costs more and finds more, until its budget
// of work is spent or its tree meets its bound:
//
//   - reductions that keep an optimal tree: parts that no tree needs, nodes of
//     one and two edges (reduce.go);
//   - Mehlhorn's tree (mehlhorn.go), which costs at most 2(1-1/l) times the
//     optimum, l being the least number of leaves of an optimal tree, where no
//     limit binds;
//   - local search (improve.go): exchange of key paths, elimination of key
//     vertices, insertion of vertices, until none of them helps;
//   - Wong's dual ascent (ascent.go) from several roots, which gives a lower
//     bound, and two smaller graphs: that of the arcs it left without reduced
//     cost, in which good trees are found, and that of the arcs which a better
//     tree could use at all, which replaces the problem;
//   - local search for the bound (packing.go): cuts of the ascent are taken back
//     and raised again in another order. It closes most of what one ascent
//     leaves open, and so narrows the problem further;
//   - simulated annealing (anneal.go), by the moves of the local search: all that
//     is left of the budget where the first ascents have spared no edge and leave
//     a wide gap, as on hypercubes; else half of what is left;
//   - perturbed restarts of the local search for trees, in turns with that for
//     the bound, until the budget ends, or many in a row have brought nothing.
//
// On graphs of a thousand nodes 2^22 units of work, which the planner gives, leave
// trees within 1.3 percent of the optimum, most of them on it (package gap has the
// tables). A move costs time in proportion to the smaller parts of the tree
// that it moves, not to the tree.
//
// The budget counts relaxed edges and not time. Only the first tree may pass it.
// Where a bound is asked for, it takes a quarter. Chance comes from a
// generator that is seeded by the problem: the same problem with the same
// options gives the same tree on every machine.
//
// Sources: K. Mehlhorn, A faster approximation algorithm for the Steiner
// problem in graphs, 1988; H. Takahashi and A. Matsuyama, 1980; E. Uchoa and
// R. F. Werneck, Fast local search for Steiner trees in graphs, 2010 (the
// moves); R. T. Wong, A dual ascent approach for Steiner tree problems on a
// directed graph, 1984; S. Kirkpatrick, C. D. Gelatt and M. P. Vecchi,
// Optimization by simulated annealing, 1983; T. Pajor, E. Uchoa and
// R. F. Werneck, A robust and scalable algorithm for the Steiner problem in
// graphs, 2018 (how the parts work together).
package steiner
