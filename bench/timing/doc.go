// Package timing times collective operations as one member of a group, and
// checks every result. All members run the same measurement; at its end each
// of them knows the slowest member's times.
package timing
