package importer

import (
	"regexp"
	"strconv"
)

// bandwidthText writes bit/s for people.
func bandwidthText(bits int64) string {
	for _, unit := range []struct {
		bits float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x := float64(bits) / unit.bits; x >= 1 {
			return strconv.FormatFloat(x, 'g', 6, 64) + " " + unit.name + "bit/s"
		}
	}
	return strconv.FormatInt(bits, 10) + " bit/s"
}

// bandwidthLabel matches what people write on a link, such as 2.5 Gbps.
var bandwidthLabel = regexp.MustCompile(`^\s*([0-9]+(?:\.[0-9]+)?)\s*([kKMGT])(?:bps|bit/s|b/s|Bps|bits?)?\s*$`)

// multiples of bit/s by the letter before the unit.
var multiples = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

// labelled reads a bandwidth in bit/s from what people write on a link.
func labelled(text string) (float64, bool) {
	m := bandwidthLabel.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	x, err := strconv.ParseFloat(m[1], 64)
	return x * multiples[m[2]], err == nil
}
