// Package terminal writes tables for people: columns that are as wide as what is
// seen of them, and on a terminal, where it is narrow, closer together, and with
// what is wrong in colour (NO_COLOR in the environment turns that off).
package terminal
