// Package spread has what the planner's balance of many groups is held against:
// irregular fabrics, the same for the same seed, and a lower bound of what the most
// loaded link must carry, whatever trees the groups are given.
package spread
