package field

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/bench/timing"
)

// What rank 0 says beside its rows of CSV:
//
//	MARK begins|ends SIZE      it waits for an answer
//	SPANS BEGUN-ENDED ...      of the timed operations of the row that follows
const (
	wordMark  = "MARK"
	wordSpans = "SPANS"
)

// ErrWords: rank 0 has said something that is none of its words.
var ErrWords = errors.New("rank 0 says what nobody understands")

// parseMark reads a mark; ok is false for other lines.
func parseMark(line string) (size int, begins, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != wordMark {
		return 0, false, false
	}
	size, err := strconv.Atoi(fields[2])
	return size, fields[1] == "begins", err == nil
}

// FormatSpans returns the line that parseSpans reads.
func FormatSpans(all []timing.Span) string {
	var b strings.Builder
	b.WriteString(wordSpans)
	for _, s := range all {
		fmt.Fprintf(&b, " %d-%d", s.Begun, s.Ended)
	}
	return b.String()
}

// parseSpans reads the spans of a line; ok is false for other lines.
func parseSpans(line string) (all []timing.Span, ok bool, err error) {
	rest, ok := strings.CutPrefix(line, wordSpans)
	if !ok {
		return nil, false, nil
	}
	for word := range strings.FieldsSeq(rest) {
		begun, ended, _ := strings.Cut(word, "-")
		var s timing.Span
		var errs [2]error
		s.Begun, errs[0] = strconv.ParseInt(begun, 10, 64)
		s.Ended, errs[1] = strconv.ParseInt(ended, 10, 64)
		if err := errors.Join(errs[0], errs[1]); err != nil {
			return nil, true, fmt.Errorf("%w: a span %q: %w", ErrWords, word, err)
		}
		all = append(all, s)
	}
	return all, true, nil
}
