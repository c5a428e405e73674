// Package p4rttest is a P4Runtime target for tests. It is a server in this process, on
// a Unix socket, without a data plane. It behaves as bmv2's server does where a
// controller can notice: it takes any P4Info together with any JSON, forgets entries
// with each push, answers a full table with UNKNOWN, refuses single updates of a batch
// and carries out the others, speaks to the primary alone and ignores in silence what a
// backup sends, and stops to answer after a RECONCILE_AND_COMMIT or a broken JSON.
//
// What it takes it checks by the P4Info with code of its own, more strictly
// than bmv2: values without leading zeros, no bit outside of a field or prefix.
//
// Tests of several packages use it: it knows nothing of package testing.
package p4rttest
