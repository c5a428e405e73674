// Package hierarchy simulates a hierarchy of a million nodes. It has a management zone
// of real supervisors, base zones of which one is real, every node of it, and stubs for
// the others.
//
// Real nodes run the cores that production runs, in worlds of internal/sim/zone:
// zone.Core and, beside it, the role of internal/core/hierarchy. A stub zone is
// its delegates alone. They run the same role and put the same messages on the
// same links, but their view is written beforehand: it is whole, and they are
// elected, when delegates of a real zone of that size were, in a run of its own
// (Measure). So a stub asks everything of the management zone that a real zone
// does, and the time that a base zone takes is taken from a real one.
//
// # The network
//
// The links of the hierarchy are streams between the worlds: what is sent
// arrives in order after Config.Zone.Delay and jitter, and takes its receiver a
// time that benchmarks report, one after the other. The worlds advance together by less
// than the delay, so that nothing arrives in a world's past.
//
// The same Config gives the same run.
package hierarchy
