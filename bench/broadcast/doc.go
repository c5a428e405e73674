// Package broadcast measures server collectives. It reports how long a broadcast of
// hostlib/scoll takes from the root's send to the last member's receipt, and to the
// completed, aggregated reply; and how many a second one root can send.
//
// Every member runs the same services, whose callbacks take no time. In those
// that are timed a reply is the latest moment at which a member of the subtree
// has received the request, on the clock that all processes of one machine
// share; so the receipt means something on one machine alone. In those that are
// counted replies are empty.
package broadcast
