// Package flame draws profiles of the processor as flame graphs, after Brendan
// Gregg (The Flame Graph, Communications of the ACM 59(6), 2016): a box is a
// function, as wide as its share of the samples, and stands on the one that
// called it. The drawing is an SVG without scripts; boxes tell their names and
// shares to who points at them.
package flame
