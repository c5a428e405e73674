// Package mesh connects named nodes by TCP: each listens on one address, and
// whoever calls says who it is, which start of it, whom it wants, and what for
// (a lane). Both sides know then with whom they talk; where certificates are
// given, by them, under TLS 1.3.
//
// A greeting is, big-endian,
//
//	caller   "TRIM", version 2 (1), lane (1), incarnation (8),
//	         length of its name (1) and the name, length of the name that it wants (1) and the name,
//	         the latest incarnation of that one that it knows of, 0 if it knows none (8)
//	answer   0; 1 for a refusal; 2 for one of an earlier incarnation; or 3 where the answering one is itself in
//	         an earlier one than the caller knows (1); incarnation (8), length of the reason (1) and the reason
//
// With certificates all of it travels encrypted, a caller's certificate names
// the host that it says it is, and the answering one's the host that was wanted.
//
// What the connections carry afterwards is their lane's own business.
package mesh
