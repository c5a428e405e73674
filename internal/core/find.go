package core

import (
	"cmp"
	"slices"
)

// Find returns the first element that is wanted; nil: none is.
func Find[E any](all []E, wanted func(*E) bool) *E {
	for i := range all {
		if wanted(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// Include returns a sorted list in which an element is, or is not.
func Include[E cmp.Ordered](all []E, e E, in bool) []E {
	i, was := slices.BinarySearch(all, e)
	switch {
	case in && !was:
		return slices.Insert(all, i, e)
	case !in && was:
		return slices.Delete(all, i, i+1)
	}
	return all
}
