// Package gauge measures costs: processor time, allocations, packets and system calls.
// It reads them for each process, and for the machine what its processors did.
//
// A process that is measured serves a connection (Serve) to the one that
// measures (Dial), which opens a window before the measurement and closes it
// afterwards. What was counted in between stays in the process until the window
// is closed, so that the talk itself is not counted.
package gauge
