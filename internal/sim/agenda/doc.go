// Package agenda holds the events of a simulated world until they are due. What is
// due first comes first, and what is due at the same time comes in the order in
// which it was pushed: a run depends on nothing else.
package agenda
