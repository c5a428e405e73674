package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
)

var _ managerd.Store = (*File)(nil)

// mode is a store's: the secrets of groups are in it.
const mode = 0o600

var (
	storeBucket   = []byte("store")
	recordsBucket = []byte("records")
	versionKey    = []byte("version")
	digestKey     = []byte("digest")
)

// File is a store in a file, which it has for itself until Close. It is safe
// for concurrent use.
type File struct {
	path   string
	before fs.FileMode // permissions that others had, and Open has taken away; 0: none

	mu     sync.Mutex
	db     *bbolt.DB // nil: closed
	broken error     // bbolt has panicked; no more is done with it
}

// Open opens the store at path, and makes it if it is not there. It checks the
// whole file; an *Error reports what is wrong with it. What others may do with the file, as
// with a copy that was put back, Open takes away: see Exposed.
func Open(path string) (*File, error) {
	path = filepath.Clean(path)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, err
		}
		file, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, &Error{Path: path, Is: ErrWrite, Detail: err}
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &File{path: path}
	if err := s.open(file); err != nil {
		return nil, errors.Join(err, ignoreClosed(file.Close()))
	}
	return s, nil
}

// Check returns why nothing could be written at path. It opens no store, which a
// manager may have.
func Check(path string) error {
	path = filepath.Clean(path)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if file, err = begin(path); err == nil {
			defer os.Remove(file.Name())
		}
	}
	if err != nil {
		return &Error{Path: path, Is: ErrWrite, Detail: err}
	}
	return file.Close()
}

// begin opens a file of another name beside path.
func begin(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil // bbolt has closed it
	}
	return err
}

// open has bbolt open file, once it is known to be valid.
func (s *File) open(file *os.File) error {
	if err := lock(file); err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return s.fail(ErrNotStore, fmt.Errorf("%v, %d bytes", info.Mode(), info.Size()))
	}
	if err := s.hide(file, info.Mode().Perm()); err != nil {
		return err
	}
	if err := checkPages(file, info.Size()); errors.Is(err, errForeign) {
		return s.fail(ErrNotStore, err)
	} else if err != nil {
		return s.fail(ErrCorrupt, err)
	}
	s.db, err = openDB(file.Name(), file)
	if err != nil {
		return s.classify(err)
	}
	version := 0
	if err := s.view(func(tx *bbolt.Tx) (err error) { version, err = checkVersion(tx); return err }); err != nil {
		return errors.Join(err, s.Close())
	}
	if version < Version {
		if err := s.upgrade(version); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if _, err := s.Load(); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// hide takes from others what they may do with the file.
func (s *File) hide(file *os.File, is fs.FileMode) error {
	if is&^mode&0o077 == 0 || runtime.GOOS == "windows" { // where a mode says nothing of others
		return nil
	}
	if err := file.Chmod(is & mode); err != nil {
		return &Error{Path: s.path, Is: ErrWrite, Detail: fmt.Errorf("others may read the secrets in it (mode %04o): %w", is, err)}
	}
	s.before = is
	return nil
}

// Exposed returns the mode that the file had, if others could read or write it: they may have
// the secrets of all groups in it.
func (s *File) Exposed() (is fs.FileMode, exposed bool) { return s.before, s.before != 0 }

// openDB opens a bbolt file. What panics in it is an error.
func openDB(path string, file *os.File) (db *bbolt.DB, err error) {
	defer recovered(&err)()
	o := *bbolt.DefaultOptions
	o.Timeout = 1 // nanosecond: try once
	o.OpenFile = func(string, int, os.FileMode) (*os.File, error) { return file, nil }
	return bbolt.Open(path, mode, &o)
}

// errPanic is what was wrong where bbolt panicked or its memory was not there.
var errPanic = errors.New("bbolt cannot read it")

// recovered makes a panic, or a fault in the mapped file, an error, where its
// result is deferred.
func recovered(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}
}

// create makes an empty store at path: all of it, or nothing.
func create(path string) error {
	file, err := begin(path)
	if err != nil {
		return &Error{Path: path, Is: ErrWrite, Detail: err}
	}
	defer os.Remove(file.Name())
	if err := initialise(file); err != nil {
		return &Error{Path: path, Is: ErrWrite, Detail: err}
	}
	// Unlike a rename, a link leaves what another manager has made meanwhile.
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return &Error{Path: path, Is: ErrWrite, Detail: err}
	}
	return syncDirectory(filepath.Dir(path))
}

func initialise(file *os.File) error {
	db, err := openDB(file.Name(), file)
	if err != nil {
		return errors.Join(err, ignoreClosed(file.Close()))
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		head, err := tx.CreateBucket(storeBucket)
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket(recordsBucket); err != nil {
			return err
		}
		return errors.Join(putDigest(head, digest{}), head.Put(versionKey, seal(versionKey, []byte(strconv.Itoa(Version)))))
	})
	return errors.Join(err, db.Close())
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("store: syncing %s: %w", path, err)
	}
	return nil
}

// Path returns the file's path.
func (s *File) Path() string { return s.path }

// Close gives the file up. Nothing is lost: what was saved is in it.
func (s *File) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	if err := db.Close(); err != nil {
		return fmt.Errorf("store: closing %s: %w", s.path, err)
	}
	return nil
}

// Load implements managerd.Store.
func (s *File) Load() (all []manager.Record, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		all, err = load(tx, decode)
		return err
	})
	return all, err
}

// Save implements managerd.Store: it returns when records are on the disk.
func (s *File) Save(records []manager.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.do(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error { return save(tx, records) })
	})
	var known *Error
	if err != nil && !errors.As(err, &known) && !errors.Is(err, errRecord) {
		return s.fail(ErrWrite, err) // bbolt keeps only the text of some
	}
	return err
}

func (s *File) view(f func(*bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.do(func() error { return s.db.View(f) })
}

// do does something with the database, and says of its error what it means.
func (s *File) do(f func() error) error {
	switch {
	case s.broken != nil:
		return s.broken
	case s.db == nil:
		return s.fail(ErrClosed, nil)
	}
	err := func() (err error) {
		defer recovered(&err)()
		return f()
	}()
	if err == nil {
		return nil
	}
	err = s.classify(err)
	if errors.Is(err, errPanic) {
		s.broken = err
	}
	return err
}

func (s *File) fail(is, detail error) error { return &Error{Path: s.path, Is: is, Detail: detail} }

// classify says what an error of bbolt, or of this package, means.
func (s *File) classify(err error) error {
	var path *fs.PathError
	var errno syscall.Errno
	switch {
	case errors.Is(err, ErrNewer), errors.Is(err, ErrOlder), errors.Is(err, ErrNotStore), errors.Is(err, ErrCorrupt):
		var e *Error
		if errors.As(err, &e) {
			e.Path = s.path
		}
		return err
	case errors.Is(err, berrors.ErrTimeout):
		return s.fail(ErrHeld, nil)
	case errors.Is(err, errPanic), errors.Is(err, berrors.ErrInvalid),
		errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return s.fail(ErrCorrupt, err)
	case errors.Is(err, errRecord):
		return fmt.Errorf("store: saving to %s: %w", s.path, err)
	case errors.As(err, &path), errors.As(err, &errno):
		return s.fail(ErrWrite, err)
	}
	return fmt.Errorf("store: %s: %w", s.path, err)
}

// damaged reports something wrong in the buckets.
func damaged(err error) error { return &Error{Is: ErrCorrupt, Detail: err} }

// checkVersion returns a store's version, and reports one that this package cannot
// read.
func checkVersion(tx *bbolt.Tx) (int, error) {
	head := tx.Bucket(storeBucket)
	if head == nil || tx.Bucket(recordsBucket) == nil {
		return 0, &Error{Is: ErrNotStore, Detail: errors.New("it is another bbolt database")}
	}
	text, _, err := unseal(versionKey, head.Get(versionKey))
	if err != nil {
		return 0, damaged(err)
	}
	version, err := strconv.Atoi(string(text))
	detail := fmt.Errorf("version %d; this manager's is %d", version, Version)
	switch {
	case err != nil:
		return 0, damaged(err)
	case version > Version:
		return 0, &Error{Is: ErrNewer, Detail: detail}
	case version < oldest:
		return 0, &Error{Is: ErrOlder, Detail: detail}
	}
	return version, nil
}

// load reads all records.
func load(tx *bbolt.Tx, decode func(key, text []byte) (manager.Record, error)) ([]manager.Record, error) {
	var all []manager.Record
	var found digest
	err := tx.Bucket(recordsBucket).ForEach(func(key, value []byte) error {
		text, sum, err := unseal(key, value)
		if err != nil {
			return err
		}
		found.add(sum)
		r, err := decode(key, text)
		all = append(all, r)
		return err
	})
	if err != nil {
		return nil, damaged(err)
	}
	want, err := getDigest(tx.Bucket(storeBucket))
	if err != nil {
		return nil, err
	}
	if found != want {
		return nil, damaged(fmt.Errorf("it has %d of %d records, or other ones", found.Records, want.Records))
	}
	return all, nil
}

// save writes records in their order.
func save(tx *bbolt.Tx, records []manager.Record) error {
	head, bucket := tx.Bucket(storeBucket), tx.Bucket(recordsBucket)
	sum, err := getDigest(head)
	if err != nil {
		return err
	}
	for i := range records {
		if err := put(bucket, &records[i], &sum); err != nil {
			return err
		}
	}
	return putDigest(head, sum)
}

// put writes one record, or forgets its key, and keeps the digest right.
func put(bucket *bbolt.Bucket, r *manager.Record, all *digest) error {
	key := keyOf(r)
	if old := bucket.Get(key); old != nil {
		_, sum, err := unseal(key, old)
		if err != nil {
			return damaged(err)
		}
		all.remove(sum)
	}
	if r.Delete {
		return bucket.Delete(key)
	}
	text, err := encode(r)
	if err != nil {
		return err
	}
	all.add(checksum(key, text))
	return bucket.Put(key, seal(key, text))
}

func getDigest(head *bbolt.Bucket) (d digest, err error) {
	text, _, err := unseal(digestKey, head.Get(digestKey))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, damaged(err)
	}
	return d, nil
}

func putDigest(head *bbolt.Bucket, d digest) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return head.Put(digestKey, seal(digestKey, text))
}
