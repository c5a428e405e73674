// Package zone simulates the membership of a whole zone. It runs as many cores as a
// zone has, for as long as an hour, which is more than the world of package sim
// carries. That one copies, hashes and traces every byte; here messages travel as the
// values that the cores make, and are only weighed.
//
// # The network
//
//	datagrams  arrive after Config.Delay, or are lost
//	streams    arrive in order; what is lost comes Resend later, again and again
//	dials      are answered after a round trip: by a connection, or by a refusal
//	           if the process is not there. A silent or cut off host does not
//	           answer
//
// A process that is killed has its connections ended by its host; a silent host
// ends nothing. A partition holds up streams and loses datagrams.
//
// # Processing
//
// Every message and datagram takes its receiver time, Config.Cost; what comes
// meanwhile waits. What the receiver sends leaves when that time is over.
//
// The same Config gives the same run: World.Hash reports.
package zone
