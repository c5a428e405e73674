package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a command's output that appears whole or not at all: until Commit, what
// was at its path stays as it is. What is no regular file, such as a device or a
// pipe, is written at once.
type File struct {
	*os.File
	path string // where it is to be; empty: it is there already
}

// Create begins a file. The caller must Commit or Discard it.
func Create(path string) (*File, error) {
	mode := fs.FileMode(0o644)
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at // not the link, but what it leads to, is replaced
	}
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{File: f}, err
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return nil, &fs.PathError{Op: "create", Path: path, Err: failed.Err}
	}
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return &File{f, path}, nil
}

// Commit puts the file, which is on the disk then, where it is to be. It is not
// there if that fails.
func (f *File) Commit() error {
	if f.path == "" {
		return f.Close()
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Discard())
	}
	if err := f.Close(); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Discard gives the file up.
func (f *File) Discard() error {
	err := f.Close()
	if f.path != "" {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// WriteFile writes a file whole, or leaves what was there.
func WriteFile(path string, content []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}
