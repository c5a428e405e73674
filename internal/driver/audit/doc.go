// Package audit writes who has done what to a file of its own: a line of JSON for each
// record, apart from the log for those who look for faults.
package audit
