// Package greeting lays out the greeting of a connection between two hosts. It comes
// before frames and says who calls whom, in which incarnations, and what the connection
// is for. All numbers are big-endian.
//
//	bytes   greeting
//	4       "TRIB"
//	1       version of the protocol: 4
//	1       class of the connection
//	2       0
//	8       incarnation of the caller
//	8       latest incarnation of the host that is wanted, which the caller
//	        knows; 0: none
//	8       number of the call: rises with every call of the caller's
//	8       number of the last call of the other host that the caller has
//	        accepted in this class; 0: none
//	1+n     name of the caller
//	1+n     name of the host that is wanted; none: the caller only asks who is there
//
//	bytes   answer
//	1       code
//	8       incarnation of the answering host, with code 2 the caller's that is
//	        known; 0 in a refusal
//	1+n     reason of a refusal, for people; with code 6 the name of who is there
//
// The first five bytes of a greeting, and a refusal (code 1), are the same in all
// versions, so that hosts of different versions can say so to each other.
package greeting
