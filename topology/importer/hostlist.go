package importer

import (
	"fmt"
	"strconv"
	"strings"
)

// maxHostlist is the most names of one hostlist.
const maxHostlist = 1 << 20

// hostlist returns the names of a hostlist expression of Slurm, such as
// tux[0-3,12,18-20],login1 or rack[0-1]n[00-31]: numbers keep their leading
// zeros, and of several brackets the last counts fastest.
func hostlist(text string) ([]string, error) {
	var names []string
	for _, part := range splitOutside(text) {
		if part == "" {
			return nil, fmt.Errorf("%q has an empty name: %w", short(text), ErrSyntax)
		}
		more, err := expand(part, maxHostlist-len(names))
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return names, nil
}

// splitOutside splits at commas that are not in brackets.
func splitOutside(text string) []string {
	var parts []string
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

// expand returns the names of one part, at most so many.
func expand(part string, most int) ([]string, error) {
	names := []string{""}
	for rest := part; rest != ""; {
		before, after, bracket := strings.Cut(rest, "[")
		if strings.ContainsRune(before, ']') {
			return nil, fmt.Errorf("%q closes a bracket that is not open: %w", short(part), ErrSyntax)
		}
		choices := []string{""}
		if bracket {
			ranges, behind, closed := strings.Cut(after, "]")
			if !closed {
				return nil, fmt.Errorf("%q leaves a bracket open: %w", short(part), ErrSyntax)
			}
			var err error
			if choices, err = numbers(ranges, most); err != nil {
				return nil, fmt.Errorf("%q: %w", short(part), err)
			}
			after = behind
		}
		if len(names)*len(choices) > most {
			return nil, fmt.Errorf("%q stands for more than %d names: %w", short(part), maxHostlist, ErrTooLarge)
		}
		longer := make([]string, 0, len(names)*len(choices))
		for _, name := range names {
			for _, choice := range choices {
				longer = append(longer, name+before+choice)
			}
		}
		names, rest = longer, after
	}
	return names, nil
}

// numbers returns those of ranges such as 0-3,12,018-020.
func numbers(ranges string, most int) ([]string, error) {
	var list []string
	for _, r := range strings.Split(ranges, ",") {
		low, high, isRange := strings.Cut(r, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.ParseUint(low, 10, 32)
		to, err2 := strconv.ParseUint(high, 10, 32)
		switch {
		case err1 != nil || err2 != nil:
			return nil, fmt.Errorf("%q is not a range of numbers such as 0-3: %w", short(r), ErrSyntax)
		case from > to:
			return nil, fmt.Errorf("the range %s begins above its end: %w", r, ErrValue)
		case int(to-from)+1 > most-len(list):
			return nil, fmt.Errorf("the range %s has too many names: %w", r, ErrTooLarge)
		}
		for i := from; i <= to; i++ {
			list = append(list, fmt.Sprintf("%0*d", len(low), i))
		}
	}
	return list, nil
}
