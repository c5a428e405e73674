// Package rudp is reliable UDP: a reliable, ordered stream of bytes in each direction,
// over datagrams that may be lost, doubled, reordered and delayed. It is a pure core;
// internal/driver/udp is its driver.
//
// What it does is what QUIC does for one stream, without its encryption: packets have
// numbers that are never used again, and carry bytes of the stream by offset; ranges of
// numbers are acknowledged (RFC 9002); the round trip is estimated as in RFC 6298; the
// congestion window follows CUBIC (RFC 9438) with HyStart++ (RFC 9406), and packets are
// paced. docs/decisions has why.
//
// # Beginning
//
//	caller                                    listener
//	Connect, without a cookie            ->   keeps nothing
//	                                     <-   Retry, with a cookie for that address and ID
//	Connect, with the cookie             ->   makes a connection
//	                                     <-   Accept
//	Data, acknowledging nothing          ->   knows that the caller is there
//
// The caller repeats its Connect until there is an answer. Each side has an ID of 64
// random bits, by which the other names it.
//
// # States
//
//	state     input                             then      effect
//	calling   Retry                             calling   Connect with the cookie
//	calling   Accept                            open      Opened
//	calling   Close, Abort                      ended
//	calling   Config.ConnectWithin passes       ended     ErrTimeout
//	open      Data                              open      Readable; acknowledged in 1 ms, at once where it matters
//	open      CloseWrite                        open      the stream that is sent ends
//	open      Close                             closing   both end; what comes is dropped
//	open      Abort                             ended     Reset
//	open      Reset, Unknown                    ended     ErrReset
//	open      Config.LostAfter without progress ended     Reset, ErrTimeout
//	closing   all acknowledged, peer's end here draining
//	closing   all acknowledged, bytes dropped   ended     Reset: nobody reads that
//	closing   Config.LingerFor without progress ended     Reset
//	draining  Data                              draining  acknowledged
//	draining  three probe timeouts pass         ended
//
// What has come in order may be read in every state, up to the end or the error.
//
// # Bounds
//
// A sender keeps Config.SendBuffer bytes, and 32 bytes for each of at most 32,768 packets
// in flight; a receiver keeps Config.ReceiveBuffer bytes, of a peer that is not known yet
// Config.FirstWindow, in 1,024 ranges, and 32 ranges of numbers. Bytes that are not read
// close the window. Buffers grow as they are used, and are given back
// after a second without traffic. A caller whose address is not proven costs nothing.
//
// # Attackers
//
// Nothing is authenticated or encrypted here: TLS runs above. Who does not see the packets
// has to guess 64 random bits of an ID to have anything accepted as belonging to a
// connection, be it bytes, a Reset or an Unknown; to open connections it needs an address
// at which it gets the cookie; no answer is larger than what it answers. Who sees packets
// can end connections, hold them up, and put other bytes into them, which TLS notices and
// then ends the connection. A peer can acknowledge what it has not got and so have more
// sent than the network carries; TLS says who it is.
package rudp
