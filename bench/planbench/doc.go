// Package planbench measures the planner: time, balance of load, distance from optimal
// trees, memory. Each figure is shown beside its limit.
package planbench
