package core

// Name returns the name of a value of an enumeration, or other if it has none.
func Name[T ~uint8](names []string, value T, other string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return other
}
