// Package loopback reopens listeners on loopback at their former address, for tests.
//
// A port of 127.0.0.1 that is let go is anybody's: the system gives it to
// whoever next wants any port, to listen or to call from. But all of 127.0.0.0/8
// is the machine itself, and of an address other than 127.0.0.1 nobody gets a
// port who does not ask for that address. So everyone claims an address of their
// own, and its ports stay theirs, of TCP and of UDP, for as long as they hold it.
package loopback
