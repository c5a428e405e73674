package core

// Find returns the first element that is wanted; nil: none is.
func Find[E any](all []E, wanted func(*E) bool) *E {
	for i := range all {
		if wanted(&all[i]) {
			return &all[i]
		}
	}
	return nil
}
