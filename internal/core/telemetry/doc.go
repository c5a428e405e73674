// Package telemetry decides what subscribers of a gNMI target are sent, and when. It is
// a pure core: a cache of leaves, and streams of subscriptions to them. A driver reads
// what the machine has, and carries what is put out.
//
// # Leaves
//
// The driver gives all leaves of a part of the data as a Snapshot; what has changed, and
// what is gone, the core finds itself. [Events] are given when they may have changed.
// The other parts, which are counters, are given when the core asks for them
// (Output.Collect): only while somebody reads them.
//
// # Streams
//
// A stream has subscriptions: paths, which may have wildcards, with a trigger each. What
// is to be sent waits in the stream's queue, once for each leaf: a leaf that is already
// there is sent with its latest value, and counted as a duplicate. So a reader that is
// slow costs as much memory as there are leaves. A batch is put out when the driver says
// that it can be sent (Ready).
//
//	leaf in a stream  changes, or is due  is removed               is taken
//	unsent            waits               is forgotten             -
//	waits, unsent     is counted          is forgotten             update; sent
//	sent              waits               waits as removed         -
//	waits             is counted          waits as removed         update; sent
//	waits as removed  waits               -                        delete; is forgotten
//
//	stream       Open        Snapshot of what it waits for   Poll      queue is taken  Close
//	none         collecting
//	collecting               leaves wait, then sync; synced            batch           none
//	synced                   changed leaves wait             as Open   batch           none
//
// A stream of mode Once ends behind sync.
//
// # Triggers
//
//	trigger        an event leaf waits             a counter waits
//	OnChange       when it changes                 when it was found changed, each Config.Interval
//	Sample         each interval                   each interval, collected then
//	TargetDefined  when it changes                 each Config.Interval
//
// A heartbeat has all leaves of its subscription wait, changed or not. Suppress keeps a
// sample from waiting that has the value of the one before. Samples are due at multiples
// of their interval, so that one collection serves all streams.
package telemetry
