package secretfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Errors of Read. They are wrapped; use errors.Is.
var (
	// ErrMode: others than its owner may read or change a file that holds a secret.
	ErrMode = errors.New("others may read or change this secret")
	// ErrSize: a file is larger than any that was meant.
	ErrSize = errors.New("the file is too large")
)

// Most is the largest file that Read reads, in bytes.
const Most = 1 << 20

// Read returns what is in a file that holds a secret. It returns ErrMode where everybody
// may read or write the file; and, as ssh does with its keys, where this process's user owns
// it and its group may, too. A group of a file that somebody else owns was chosen by that
// owner for who reads it, as in a volume of Kubernetes. Symbolic links are followed.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, Most+1))
	if err == nil && len(text) > Most {
		err = fmt.Errorf("%w: %s: more than %d bytes", ErrSize, path, Most)
	}
	return text, err
}

func check(path string, info fs.FileInfo) error {
	open := exposed(info)
	if open == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s has mode %04o: run chmod %04o %s, and replace the secret if others may have read it",
		ErrMode, path, info.Mode().Perm(), info.Mode().Perm()&^open, path)
}
