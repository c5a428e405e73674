// Package planbench measures how fast trees are planned and repaired, how even
// many groups load a fabric against what any placement must load, how near
// Steiner trees are to the optimum, and what a fabric takes in memory; each
// figure beside its limit.
package planbench
