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

// What people write on a link: a bandwidth alone, such as 2.5 Gbps or 10G; or, with
// its unit spelled, among other words, such as 45 Mbps DS-3 or MPLS (2 x 10 Gbit/s).
var (
	bareLabel = regexp.MustCompile(`^()()\s*([0-9]+(?:\.[0-9]+)?)\s*([kKMGT])(?:bits?)?\s*$`)
	wordLabel = regexp.MustCompile(`^(?:(.*?)[\s(])??(?:([0-9]{1,4})\s*[xX×*]\s*)?([0-9]+(?:\.[0-9]+)?)\s*([kKMGT])` + bitUnit + `(?:[\s),;].*)?$`)
	notExact  = regexp.MustCompile(`[<>~≤≥]|-\s*$`) // before the number
	quantity  = regexp.MustCompile(`[0-9]\s*[kKMGT]` + bitUnit)
)

const bitUnit = `(?:bps|bit/s|b/s|Bps)`

// multiples of bit/s by the letter before the unit.
var multiples = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

// labelled reads a bandwidth in bit/s from what people write on a link. Of a
// text with several bandwidths, a range or a bound it reads none.
func labelled(text string) (float64, bool) {
	m := bareLabel.FindStringSubmatch(text)
	if m == nil {
		m = wordLabel.FindStringSubmatch(text)
	}
	if m == nil || len(quantity.FindAllString(text, 2)) > 1 || notExact.MatchString(m[1]) {
		return 0, false
	}
	times := 1.0
	if m[2] != "" {
		times, _ = strconv.ParseFloat(m[2], 64) // four digits at most
	}
	x, err := strconv.ParseFloat(m[3], 64)
	return times * x * multiples[m[4]], err == nil
}
