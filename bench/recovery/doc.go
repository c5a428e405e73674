// Package recovery measures what happens to a communicator that is revoked, or loses a member: how
// soon all operations are interrupted, what the ones after that cost, how long an agreement takes,
// and how soon the survivors of kill -9 run over switches again. Members are processes on the hosts
// of a fabric of package field; they do what requests ask for, and answer with times of a clock that
// all processes of the machine share.
package recovery
