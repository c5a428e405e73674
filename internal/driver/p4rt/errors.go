package p4rt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What a caller asked for is wrong.
var (
	ErrConfig  = errors.New("p4rt: invalid configuration")
	ErrProgram = errors.New("p4rt: the program's files are unusable")
	ErrEntry   = errors.New("p4rt: no such entry in this program") // an entry, group or packet does not fit the P4Info
	ErrClosed  = errors.New("p4rt: the client is closed")
)

// The target cannot be worked with; each says what is to be done.
var (
	ErrUnavailable   = errors.New("p4rt: the target cannot be reached; check its address, and whether it takes TLS (p4runtime: tls)")
	ErrWedged        = errors.New("p4rt: the target does not answer in time; if it stays so, restart it")
	ErrNotPrimary    = errors.New("p4rt: another controller is primary; stop it, or use a higher election id")
	ErrElection      = errors.New("p4rt: another controller uses the same election id; stop it, or use another id")
	ErrNoPipeline    = errors.New("p4rt: the target holds no program; push it")
	ErrOtherPipeline = errors.New("p4rt: the target holds another program, or another version; push this one to replace it, and with it all entries")
	ErrRestarted     = errors.New("p4rt: the target has lost all entries and registers: it was restarted, or a program was pushed; write everything again, in new epochs")
	ErrLogin         = errors.New("p4rt: the target does not let this user in; give it the right user and password")
	ErrUnsupported   = errors.New("p4rt: the target does not know this call; its P4Runtime is too old")
	ErrMalformed     = errors.New("p4rt: the target sent what its program does not have")
)

// The target refused something.
var (
	ErrTableFull = errors.New("p4rt: the table is full")
	ErrExists    = errors.New("p4rt: it is there already")
	ErrMissing   = errors.New("p4rt: it is not there")
	ErrRefused   = errors.New("p4rt: the target refused it")
)

// WriteError reports which updates of a Write or Reconcile the target refused.
// All others of the same step were written; those of later steps were not
// tried. It unwraps to its causes.
type WriteError struct {
	Failed []UpdateError
	Tried  int // updates of the steps that were tried
	Left   int // updates of later steps, not tried
}

// UpdateError is one refused update.
type UpdateError struct {
	Update Update
	Words  string // what it was to do, in words
	Err    error  // wraps a sentinel of this package
}

// wordsOfFailures bounds how many refused updates an error's text reports.
const wordsOfFailures = 3

// Error implements error.
func (e *WriteError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d updates refused", len(e.Failed), e.Tried)
	if e.Left > 0 {
		fmt.Fprintf(&b, ", %d not tried", e.Left)
	}
	for i, f := range e.Failed {
		if i == wordsOfFailures {
			fmt.Fprintf(&b, "; and %d more", len(e.Failed)-i)
			break
		}
		fmt.Fprintf(&b, "; %s: %v", f.Words, f.Err)
	}
	return b.String()
}

// Unwrap returns the causes.
func (e *WriteError) Unwrap() []error {
	causes := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		causes[i] = f.Err
	}
	return causes
}

// callCodes are the sentinels of a call's status. PERMISSION_DENIED is what a
// target says to a controller that is not primary; FAILED_PRECONDITION, to
// calls that need a program when it holds none.
var callCodes = map[codes.Code]error{
	codes.Canceled:           ErrUnavailable, // a caller that gives up is reported before
	codes.DeadlineExceeded:   ErrWedged,
	codes.Unavailable:        ErrUnavailable,
	codes.Unimplemented:      ErrUnsupported,
	codes.PermissionDenied:   ErrNotPrimary,
	codes.Unauthenticated:    ErrLogin,
	codes.FailedPrecondition: ErrNoPipeline,
}

// updateCodes are the sentinels of one update's error.
var updateCodes = map[codes.Code]error{
	codes.Unimplemented:     ErrUnsupported,
	codes.AlreadyExists:     ErrExists,
	codes.NotFound:          ErrMissing,
	codes.ResourceExhausted: ErrTableFull,
	codes.Unknown:           errUnexplained,
}

// errUnexplained marks what a target refused without saying why; bmv2 says so
// of a full table, among others.
var errUnexplained = fmt.Errorf("%w, without a reason that P4Runtime has a code for", ErrRefused)

// fromCode turns a code and its message into an error, by a table.
func fromCode(sentinels map[codes.Code]error, code codes.Code, message string) error {
	is := sentinels[code]
	if is == nil {
		is = ErrRefused
	}
	if message == "" {
		return fmt.Errorf("%w (%v, without a message)", is, code)
	}
	return fmt.Errorf("%w (%v: %s)", is, code, message)
}

// callError turns the error of a call, made under ctx, into one of this package.
// outer is what ctx was made of, by adding this client's own deadline.
func callError(ctx, outer context.Context, err error) error {
	if err == nil {
		return nil
	}
	if outer.Err() != nil {
		return outer.Err() // the caller's own end is no fault of the target
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	if s.Code() == codes.DeadlineExceeded && sameDeadline(ctx, outer) {
		return context.DeadlineExceeded // the target knew of it, and noticed first
	}
	return fromCode(callCodes, s.Code(), s.Message())
}

// sameDeadline reports whether the caller's deadline is that of the call.
func sameDeadline(ctx, outer context.Context) bool {
	own, _ := ctx.Deadline()
	callers, has := outer.Deadline()
	return has && own.Equal(callers)
}

// perUpdate returns the error of each of n updates from the details of a
// Write's status, nil for those that were written. It returns false if the
// status has none of them, or not one for each: then the whole call failed.
func perUpdate(err error, n int) ([]error, bool) {
	s, ok := status.FromError(err)
	if !ok || len(s.Details()) != n {
		return nil, false
	}
	each := make([]error, n)
	failed := false
	for i, detail := range s.Details() {
		e, ok := detail.(*p4v1.Error)
		if !ok {
			return nil, false
		}
		if code := codes.Code(e.GetCanonicalCode()); code != codes.OK {
			each[i] = fromCode(updateCodes, code, e.GetMessage())
			failed = true
		}
	}
	return each, failed
}
