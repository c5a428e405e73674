// Package printable makes any text safe to print on a terminal. It spells out what a
// terminal would act upon. It writes counts with what they count.
package printable
