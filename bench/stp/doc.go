// Package stp reads Steiner problems in graphs in SteinLib's format, .stp.
//
// Of a file it takes the sections Graph and Terminals: Nodes, Edges, E and A
// lines, Terminals and T lines. Other sections (Comment, Coordinates and what
// else programs add) are skipped. Directed arcs and the variants of the problem
// that have prizes, degrees or groups are refused.
//
// Source of the format: T. Koch, A. Martin, S. Voß, SteinLib: an updated
// library on Steiner tree problems in graphs, 2001.
package stp
