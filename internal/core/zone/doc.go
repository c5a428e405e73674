// Package zone is one node's part in one zone: membership and attributes. It combines
// internal/core/member and internal/core/attribute. It has the shape of member.Core, so
// that what drives the one drives the other.
//
// A step is one of the members' core, then one of the attributes' with what came
// of it: joins and leaves first, then neighbours, then what neighbours have sent.
// Attributes travel on the neighbours' links, in order, behind what the members'
// core sends in the same step.
//
// Keys that begin with Reserved are the service's own. A high priority monitor
// declares itself by MonitorKey; every node notifies its members' core who the
// monitors are, at the beginning of the step after the one that it learns it in.
package zone
