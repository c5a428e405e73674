// Package pki checks certificates: who holds which, in which role.
//
// A certificate says who its holder is by a URI among its alternative names,
// tributary://ROLE/NAME, the [Identity]. Host names and addresses in
// certificates mean nothing here, so that one certificate serves wherever its
// holder runs; a client names the identity that it wants to reach instead.
//
// [Load] reads a certificate, its key and the authorities that it trusts from
// files. The [Source] that it returns gives TLS configurations of servers and
// clients: TLS 1.3, both sides with a certificate. Files that change are read
// again at the next handshake; broken ones are logged, and what was there
// before stays in use. Connections that stand are not touched: they keep the
// certificate with which they began.
//
// [Source.Sign] signs for those with whom there is no connection, and [Source.Signed]
// checks that.
//
// [Init] makes an [Authority] for development and trials: its key lies in a
// file. Any other authority serves as well if its certificates carry the URI
// and the extended key usage of server, client or both.
package pki
