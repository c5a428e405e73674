// Package p4rt is a client of P4Runtime. It installs the program on one target, and
// keeps the entries and multicast groups in it as they are wanted.
//
// A [Client] holds a session with its target from [Dial] to Close: it connects,
// takes part in the election of the primary controller, watches that the target
// answers and still has what was written, and begins again with a growing pause
// when the session breaks. What becomes of it the owner learns by [Event]s, in
// order; packets that the target punts come by Packets. Every wait has an end:
// what the target does not answer in time is [ErrWedged].
//
// The program is a [Pipeline]. Each push of one carries a cookie: its upper half
// is the program's fingerprint, its lower half is drawn for the push. So a
// client can distinguish another program or version from its own, and also the same
// program pushed anew, which has lost its entries and registers, from the one
// that it knows. There is one way to push, VERIFY_AND_COMMIT: the others leave
// bmv2 without answers until it restarts.
//
// # Parts
//
// [Schema] translates entries, groups and packets by the names, widths and kinds
// of the program's P4Info; [Schema.Diff] and the order of writing are functions of
// values. The election is a state machine, which the client's goroutines step.
// None of these knows of a connection.
//
// # Errors
//
// Batches are not atomic: what a target refuses comes back as a [*WriteError],
// with the entry in words and a cause for each. Causes are sentinels of this
// package, so that nobody else needs to know gRPC's codes or how one target
// words them.
package p4rt
