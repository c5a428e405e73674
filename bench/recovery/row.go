package recovery

import (
	"fmt"
	"io"
	"slices"
)

// after is how many operations of plan B are timed.
const after = 5

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

// PlansRow is what a revoke of communicator A has meant to one collective.
type PlansRow struct {
	Hosts       int     `json:"hosts"`
	Processes   int     `json:"processes"` // of each host
	Collective  string  `json:"collective"`
	Bytes       int     `json:"bytes"`
	Rounds      int     `json:"rounds"`
	Way         string  `json:"way"`
	Interrupted figure  `json:"interrupted"` // from Revoke to the failure of A's operation at the last member
	After       []Ratio `json:"after"`       // each operation on B
}

// Ratio compares operations after a revoke with those at the same place without one: the times of the
// slowest members, and those from when the last member began to when the last one had its end.
type Ratio struct {
	Free        figure `json:"free"`
	Revoked     figure `json:"revoked"`
	FreeLast    figure `json:"free_last"`
	RevokedLast figure `json:"revoked_last"`
}

// Slowest returns the ratio of the medians of the slowest members.
func (r *Ratio) Slowest() float64 { return r.Revoked.Median / r.Free.Median }

// Last returns that from the last beginning on.
func (r *Ratio) Last() float64 { return r.RevokedLast.Median / r.FreeLast.Median }

// compare returns the ratios of operations on B, from the replies of rounds without and with a revoke.
func compare(free, revoked [][]reply) (all []Ratio) {
	for k := range after {
		var r Ratio
		r.Free, r.FreeLast = operations(free, k)
		r.Revoked, r.RevokedLast = operations(revoked, k)
		all = append(all, r)
	}
	return all
}

// operations returns what operation k has taken in all rounds.
func operations(rounds [][]reply, k int) (slowest, last figure) {
	var own, shared []int64
	for _, replies := range rounds {
		var longest, begun, ended int64
		for _, r := range replies {
			s := r.Spans[k]
			longest, begun, ended = max(longest, s.Ended-s.Begun), max(begun, s.Begun), max(ended, s.Ended)
		}
		own, shared = append(own, longest), append(shared, ended-begun)
	}
	return figureOf(own), figureOf(shared)
}

// interruption returns how long it has taken from Revoke to the failure of the last operation.
func interruption(replies []reply) int64 {
	var begun, last int64
	for _, r := range replies {
		begun, last = max(begun, r.Revoked), max(last, r.Interrupted)
	}
	return last - begun
}

// WritePlans writes a table, a line for each row, with the first three operations after a revoke.
func WritePlans(w io.Writer, rows []PlansRow) error {
	text := "| hosts x processes | collective | rounds | interrupted everywhere, ms | on B without a revoke, ms | 1st | 2nd | 3rd | from the last entry: without, ms | 1st | 2nd | 3rd |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		all := r.After[:3]
		text += fmt.Sprintf("| %d x %d | %s, %d B, %s | %d | %v | %v", r.Hosts, r.Processes, r.Collective, r.Bytes, r.Way, r.Rounds, r.Interrupted, all[0].Free)
		for i := range all {
			text += fmt.Sprintf(" | %.2f", all[i].Slowest())
		}
		text += fmt.Sprintf(" | %v", all[0].FreeLast)
		for i := range all {
			text += fmt.Sprintf(" | %.2f", all[i].Last())
		}
		text += " |\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// AgreeRow is what agreements take beside allreduces on the same communicator.
type AgreeRow struct {
	Hosts     int    `json:"hosts"`
	Processes int    `json:"processes"`
	Way       string `json:"way"`
	Rounds    int    `json:"rounds"`
	Agree     figure `json:"agree"`
	Allreduce figure `json:"allreduce"`
}

// slowest returns how long the slowest member has taken for each operation.
func slowest(replies []reply, of func(*reply) []span) (all []int64) {
	for i := range replies {
		for k, s := range of(&replies[i]) {
			if k == len(all) {
				all = append(all, 0)
			}
			all[k] = max(all[k], s.Ended-s.Begun)
		}
	}
	return all
}

// WriteAgreements writes a table, a line for each row.
func WriteAgreements(w io.Writer, rows []AgreeRow) error {
	text := "| hosts x processes | communicator | turns | agreement, ms | allreduce of 8 bytes, ms | ratio |\n|---|---|---|---|---|---|\n"
	for _, r := range rows {
		text += fmt.Sprintf("| %d x %d | %s | %d | %v | %v | %.2f |\n", r.Hosts, r.Processes, r.Way, r.Rounds, r.Agree, r.Allreduce, r.Agree.Median/r.Allreduce.Median)
	}
	_, err := io.WriteString(w, text)
	return err
}

// Parts are the parts of a recovery, in their order.
var Parts = []string{"detection", "revoke", "agree", "form", "tree", "settle", "first operation", "all"}

// KillRow is what the deaths of one member have taken.
type KillRow struct {
	Hosts     int               `json:"hosts"`
	Processes int               `json:"processes"` // of each host
	Rank      int               `json:"rank"`      // that was killed
	Kills     int               `json:"kills"`
	Failed    int               `json:"failed"` // other kills, after which not all survivors went on
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
		if r.Failed > 0 {
			text += fmt.Sprintf(" (%d failed)", r.Failed)
		}
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
