package turn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Errors of turns. They are wrapped; use errors.Is.
var (
	// ErrWords: a line is none of a turn's.
	ErrWords = errors.New("no words of a turn")
	// ErrFailed: a rank says that it could not do it.
	ErrFailed = errors.New("a rank has failed")
)

// Request is what all ranks of an implementation are to do.
type Request struct {
	Variant            string // of the implementation; one word
	Bytes              int    // of each rank's vector, of float32
	Warmup, Iterations int    // operations before the timed ones, and these
}

// String returns the line of r.
func (r Request) String() string {
	return fmt.Sprintf("run %s %d %d %d", r.Variant, r.Bytes, r.Warmup, r.Iterations)
}

// maxOperations bounds what a line can ask for.
const maxOperations = 1 << 20

// ParseRequest reads what String returns.
func ParseRequest(line string) (r Request, err error) {
	words := strings.Fields(line)
	if len(words) != 5 || words[0] != "run" {
		return r, fmt.Errorf("%w: %q", ErrWords, line)
	}
	r.Variant = words[1]
	for i, to := range []*int{&r.Bytes, &r.Warmup, &r.Iterations} {
		n, err := strconv.ParseUint(words[i+2], 10, 40)
		if err != nil || i > 0 && n > maxOperations {
			return Request{}, fmt.Errorf("%w: %q: %q", ErrWords, line, words[i+2])
		}
		*to = int(n)
	}
	return r, nil
}

// Reply is what one rank did.
type Reply struct {
	Right        bool   // the results that were checked
	Transport    string // how the operations ran; one word, "-" where there is but one
	User, System time.Duration
	Times        []time.Duration // of the timed operations
}

// String returns the line of r.
func (r Reply) String() string {
	var b strings.Builder
	result := "wrong"
	if r.Right {
		result = "right"
	}
	fmt.Fprintf(&b, "done %s %s %d %d", result, r.Transport, int64(r.User), int64(r.System))
	for _, t := range r.Times {
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(int64(t), 10))
	}
	return b.String()
}

// ParseReply reads what String returns, or a rank's excuse, which is an error.
func ParseReply(line string) (r Reply, err error) {
	if why, ok := strings.CutPrefix(line, "failed "); ok {
		return r, fmt.Errorf("%w: %s", ErrFailed, why)
	}
	words := strings.Fields(line)
	if len(words) < 5 || words[0] != "done" || words[1] != "right" && words[1] != "wrong" {
		return r, fmt.Errorf("%w: %q", ErrWords, shortened(line))
	}
	r.Right, r.Transport, r.Times = words[1] == "right", words[2], make([]time.Duration, len(words)-5)
	for i, word := range words[3:] {
		n, err := strconv.ParseUint(word, 10, 63)
		if err != nil {
			return Reply{}, fmt.Errorf("%w: %q", ErrWords, word)
		}
		switch i {
		case 0:
			r.User = time.Duration(n)
		case 1:
			r.System = time.Duration(n)
		default:
			r.Times[i-2] = time.Duration(n)
		}
	}
	return r, nil
}

// shortened returns the beginning of a line, for people.
func shortened(line string) string {
	const enough = 80
	if len(line) > enough {
		return line[:enough] + "..."
	}
	return line
}

// Outcome is what all ranks did together.
type Outcome struct {
	Right        bool
	Transport    string // of all ranks, or "mixed"
	User, System time.Duration
	Times        []time.Duration // of each operation, that of its slowest rank
}

// Combine brings together what the ranks did. They must have timed as many
// operations.
func Combine(replies []Reply) (o Outcome, err error) {
	o.Right = true
	for i, r := range replies {
		if i == 0 {
			o.Transport, o.Times = r.Transport, make([]time.Duration, len(r.Times))
		}
		if len(r.Times) != len(o.Times) {
			return Outcome{}, fmt.Errorf("%w: rank %d has timed %d operations, rank 0 %d", ErrWords, i, len(r.Times), len(o.Times))
		}
		if r.Transport != o.Transport {
			o.Transport = "mixed"
		}
		o.Right = o.Right && r.Right
		o.User += r.User
		o.System += r.System
		for n, t := range r.Times {
			o.Times[n] = max(o.Times[n], t)
		}
	}
	return o, nil
}
