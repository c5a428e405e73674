//go:build !linux

package processor

// Read returns what this machine's processors have spent on average: it can report
// nothing here.
func Read() (Time, error) { return Time{}, ErrUnsupported }

// ReadSum returns what this machine's processors have spent together: it can report
// nothing here.
func ReadSum() (Sum, error) { return Sum{}, ErrUnsupported }
