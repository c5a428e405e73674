// Package spread has irregular fabrics and lower bounds for the planner's balance of
// many groups. The fabrics are the same for the same seed; the bounds say what the most
// loaded link must carry, whatever trees the groups are given.
package spread
