package peers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/timing"
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

// Row is one collective and size of vectors on links of one rate.
type Row struct {
	Collective timing.Collective // empty: allreduce
	Bytes      int
	Rate       int64 // bit/s; 0: as fast as the machine
}

// collective returns the row's.
func (r *Row) collective() timing.Collective { return cmp.Or(r.Collective, timing.Allreduce) }

// AllRows are those of docs/benchmarks.md, as they are written in --rows.
var AllRows = []string{
	"8@200mbit", "64KiB@200mbit", "1MiB@200mbit", "16MiB@200mbit",
	"8@unshaped", "64KiB@unshaped", "1MiB@unshaped", "16MiB@unshaped",
}

// ParseRows reads rows such as 64KiB@200mbit, 8@unshaped or alltoall:64KiB@200mbit. Size reads the first
// half. The rows are put together by their rates, in the order in which these
// come.
func ParseRows(texts []string, size func(string) (int, error)) ([]Row, error) {
	var rows []Row
	var rates []int64
	for _, text := range texts {
		of, rest, hasCollective := strings.Cut(text, ":")
		if !hasCollective {
			of, rest = "", text
		} else if !slices.Contains(timing.Collectives(), timing.Collective(of)) {
			return nil, fmt.Errorf("%w: row %q: no collective %q, want one of %v", ErrConfig, text, of, timing.Collectives())
		}
		bytes, rate, ok := strings.Cut(rest, "@")
		if !ok {
			return nil, fmt.Errorf("%w: row %q is not like 64KiB@200mbit, 8@unshaped or alltoall:64KiB@200mbit", ErrConfig, text)
		}
		r := Row{Collective: timing.Collective(of)}
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
