package report

import (
	"errors"
	"fmt"
	"strings"
)

// Lines of a page around the tables.
const (
	pageBegin = "<!-- collbench report: begin of generated tables -->"
	pageEnd   = "<!-- collbench report: end of generated tables -->"
)

// ErrPage: a page has no place for tables.
var ErrPage = errors.New("the page has no place for tables")

// Insert returns a page with tables in the place of those that it had.
func Insert(page, tables string) (string, error) {
	before, rest, ok := strings.Cut(page, pageBegin)
	_, after, end := strings.Cut(rest, pageEnd)
	if !ok || !end {
		return "", fmt.Errorf("%w: it needs the lines %q and %q", ErrPage, pageBegin, pageEnd)
	}
	return before + pageBegin + "\n\n" + tables + "\n" + pageEnd + after, nil
}
