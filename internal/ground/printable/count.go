package printable

import "fmt"

// Count returns a number and what it counts, such as "1 seed" or "2 seeds".
func Count[N int | uint64](n N, one, several string) string {
	if n == 1 {
		several = one
	}
	return fmt.Sprintf("%d %s", n, several)
}
