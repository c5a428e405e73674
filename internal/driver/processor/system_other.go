//go:build !linux

package processor

// System returns the processors of this machine: it can report nothing here.
func System() Source { return system{} }

type system struct{}

// Read implements Source.
func (system) Read() (Time, error) { return Time{}, ErrUnsupported }

// ReadSum returns what this machine's processors have spent together: it can report
// nothing here.
func ReadSum() (Sum, error) { return Sum{}, ErrUnsupported }
