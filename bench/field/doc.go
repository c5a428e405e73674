// Package field runs a fabric of real processes in network namespaces. There is a
// manager, an agent for every switch, and a member for every host. It starts and kills
// them, reports where a group's tree is, and compares that with what the links carried.
package field
