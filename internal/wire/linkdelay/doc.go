// Package linkdelay lays out the messages by which two neighbours of Tributary measure
// the delay of the link between them: a request, and a response that says how long the
// responder held it. That is the peer delay mechanism of PTP (IEEE 1588), reduced to what
// needs no synchronized clocks. docs/lldp.md has the exchange.
package linkdelay
