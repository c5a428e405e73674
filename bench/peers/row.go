package peers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

// Errors of a comparison. They are wrapped; use errors.Is.
var (
	// ErrConfig: this cannot be compared.
	ErrConfig = errors.New("cannot compare this")
	// ErrMissing: a peer is not installed.
	ErrMissing = errors.New("a peer is not installed")
	// ErrWrong: a result is wrong.
	ErrWrong = errors.New("a result is wrong")
)

// Row is one size of vectors on links of one rate.
type Row struct {
	Bytes int
	Rate  int64 // bit/s; 0: as fast as the machine
}

// AllRows are those of docs/benchmarks.md, as they are written in --rows.
var AllRows = []string{
	"8@200mbit", "64KiB@200mbit", "1MiB@200mbit", "16MiB@200mbit",
	"8@unshaped", "64KiB@unshaped", "1MiB@unshaped", "16MiB@unshaped",
}

// ParseRows reads rows such as 64KiB@200mbit or 8@unshaped. Size reads the first
// half. The rows are put together by their rates, in the order in which these
// come.
func ParseRows(texts []string, size func(string) (int, error)) ([]Row, error) {
	var rows []Row
	var rates []int64
	for _, text := range texts {
		bytes, rate, ok := strings.Cut(text, "@")
		if !ok {
			return nil, fmt.Errorf("%w: row %q is not like 64KiB@200mbit or 8@unshaped", ErrConfig, text)
		}
		var r Row
		var errs [2]error
		r.Bytes, errs[0] = size(bytes)
		r.Rate, errs[1] = netlab.ParseRate(rate)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("%w: row %q: %w", ErrConfig, text, err)
		}
		if r.Bytes == 0 || r.Bytes%4 != 0 {
			return nil, fmt.Errorf("%w: row %q: vectors of float32 have a multiple of 4 bytes", ErrConfig, text)
		}
		rows = append(rows, r)
		if !slices.Contains(rates, r.Rate) {
			rates = append(rates, r.Rate)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: no rows", ErrConfig)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return slices.Index(rates, a.Rate) - slices.Index(rates, b.Rate) })
	return rows, nil
}
