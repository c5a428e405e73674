// Package terminal writes tables for people, in colour on a terminal. Columns are as
// wide as their visible text, narrower on a narrow terminal; faults are in colour
// (NO_COLOR in the environment turns that off).
package terminal
