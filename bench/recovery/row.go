package recovery

import (
	"fmt"
	"io"
	"slices"
)

// figure is the median and the worst of what was measured several times, in ms.
type figure struct {
	Median float64 `json:"median_ms"`
	Worst  float64 `json:"worst_ms"`
}

// figureOf returns that of times in ns; of none it is zero.
func figureOf(times []int64) figure {
	if len(times) == 0 {
		return figure{}
	}
	sorted := slices.Sorted(slices.Values(times))
	return figure{Median: ms(sorted[len(sorted)/2]), Worst: ms(sorted[len(sorted)-1])}
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

func (f figure) String() string { return fmt.Sprintf("%.2f (%.2f)", f.Median, f.Worst) }

// Parts are the parts of a recovery, in their order.
var Parts = []string{"detection", "revoke", "agree", "form", "tree", "settle", "first operation", "all"}

// KillRow is what the deaths of one member have taken.
type KillRow struct {
	Hosts     int               `json:"hosts"`
	Processes int               `json:"processes"` // of each host
	Rank      int               `json:"rank"`      // that was killed
	Kills     int               `json:"kills"`
	Parts     map[string]figure `json:"parts"`
}

// parts returns how long each part has taken, from the times of all survivors.
func parts(killed int64, survivors []reply) map[string]int64 {
	latest := func(of func(r *reply) int64) (t int64) {
		for i := range survivors {
			t = max(t, of(&survivors[i]))
		}
		return t
	}
	first := survivors[0].Interrupted
	for _, r := range survivors {
		first = min(first, r.Interrupted)
	}
	ends := []int64{
		first,
		latest(func(r *reply) int64 { return r.Interrupted }),
		latest(func(r *reply) int64 { return r.Agreed }),
		latest(func(r *reply) int64 { return r.Formed }),
		latest(func(r *reply) int64 { return r.Tree }),
		latest(func(r *reply) int64 { return r.Shrunk }),
		latest(func(r *reply) int64 { return r.First }),
	}
	all, begun := map[string]int64{}, killed
	for i, end := range ends {
		end = max(end, begun) // parts of different members overlap
		all[Parts[i]] = end - begun
		begun = end
	}
	all["all"] = begun - killed
	return all
}

// WriteKills writes a table, a column for each row.
func WriteKills(w io.Writer, rows []KillRow) error {
	text := "| part, ms: median (worst)"
	rule := "|---"
	for _, r := range rows {
		text += fmt.Sprintf(" | %d x %d, rank %d, %d kills", r.Hosts, r.Processes, r.Rank, r.Kills)
		rule += "|---"
	}
	text += " |\n" + rule + "|\n"
	for _, part := range Parts {
		text += "| " + part
		for _, r := range rows {
			text += " | " + r.Parts[part].String()
		}
		text += " |\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
