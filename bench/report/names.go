package report

import "fmt"

// SizeName returns a number of bytes as people write it, such as 64 KiB.
func SizeName(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// RateName returns a rate in bit/s as people write it, such as 200 Mbit/s.
func RateName(rate int64) string {
	switch {
	case rate == 0:
		return "unshaped"
	case rate%1e9 == 0:
		return fmt.Sprintf("%d Gbit/s", rate/1e9)
	case rate%1e6 == 0:
		return fmt.Sprintf("%d Mbit/s", rate/1e6)
	}
	return fmt.Sprintf("%d bit/s", rate)
}

// timeName returns microseconds with three digits that count.
func timeName(us float64) string {
	switch {
	case us == 0:
		return "-"
	case us < 1000:
		return fmt.Sprintf("%.0f us", us)
	case us < 10000:
		return fmt.Sprintf("%.2f ms", us/1000)
	case us < 100000:
		return fmt.Sprintf("%.1f ms", us/1000)
	}
	return fmt.Sprintf("%.0f ms", us/1000)
}
