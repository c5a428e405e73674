package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	parallel = 3.2  // between parallel links
	arch     = 20.0 // height of an arc between neighbours of one row
	archMore = 7.0  // more, for each neighbour between
)

// route gives every link its course.
func (s *sheet) route() {
	ranked := s.fans()
	for _, bundle := range s.bundles() {
		for i, w := range bundle {
			wire := &s.wires[w]
			lower, upper := &s.boxes[wire.lower], &s.boxes[wire.upper]
			aside := (float64(i) - float64(len(bundle)-1)/2) * parallel
			switch {
			case lower.isHost && ranked[lower.leaf] && lower.leaf == wire.upper:
				wire.path = s.fan(lower, upper, aside)
			case lower.at.y == upper.at.y:
				wire.path = s.arc(lower, upper, float64(i))
			default:
				wire.path = line(
					point{lower.at.x + aside, lower.at.y + lower.h/2},
					point{upper.at.x + aside, upper.at.y - upper.h/2})
			}
		}
	}
}

// bundles groups the links by the two boxes that they join, and turns each so
// that it begins at the lower one.
func (s *sheet) bundles() [][]int {
	type pair struct{ lower, upper int }
	index := map[pair]int{}
	var all [][]int
	for i := range s.wires {
		w := &s.wires[i]
		a, b := s.boxes[w.lower].at, s.boxes[w.upper].at
		if a.y > b.y || a.y == b.y && a.x > b.x {
			w.lower, w.upper = w.upper, w.lower
		}
		p := pair{w.lower, w.upper}
		if _, known := index[p]; !known {
			index[p] = len(all)
			all = append(all, nil)
		}
		all[index[p]] = append(all[index[p]], i)
	}
	for _, bundle := range all {
		s.centre(bundle)
	}
	return all
}

// centre puts the tree's link in the middle of its bundle.
func (s *sheet) centre(bundle []int) {
	i := slices.IndexFunc(bundle, func(w int) bool { return s.wires[w].course == used })
	if i >= 0 {
		m := (len(bundle) - 1) / 2
		bundle[i], bundle[m] = bundle[m], bundle[i]
	}
}

// fans reports which switches have their hosts in several ranks.
func (s *sheet) fans() map[int]bool {
	m := map[int]bool{}
	for b, list := range s.hostsOf() {
		m[b] = b >= 0 && ranksOf(len(list)) > 1
	}
	return m
}

// fan leads from a host straight up past the ranks, and from there to its
// switch.
func (s *sheet) fan(host, leaf *box, aside float64) []point {
	knee := s.kneeOf(host.leaf)
	top := point{host.at.x + aside, knee}
	return append(line(point{top.x, host.at.y + host.h/2}, top),
		line(top, point{leaf.at.x + aside, leaf.at.y - leaf.h/2})[1:]...)
}

// kneeOf returns the height just above the hosts of a switch.
func (s *sheet) kneeOf(leaf int) float64 {
	y := 0.0
	for _, b := range s.boxes {
		if b.isHost && b.leaf == leaf {
			y = max(y, b.at.y+b.h/2)
		}
	}
	return y + 3
}

// arc joins two switches of one row above it.
func (s *sheet) arc(left, right *box, i float64) []point {
	between := 0.0
	for _, b := range s.boxes {
		if b.at.y == left.at.y && b.at.x > left.at.x && b.at.x < right.at.x {
			between++
		}
	}
	h := (arch + between*archMore + i*parallel) * 4 / 3
	from, to := left.at.plus(point{left.w / 4, left.h / 2}), right.at.plus(point{-right.w / 4, right.h / 2})
	reach := (to.x - from.x) / 5
	return []point{from, from.plus(point{reach, h}), to.plus(point{-reach, h}), to}
}

// line is a straight piece.
func line(a, b point) []point {
	third := point{(b.x - a.x) / 3, (b.y - a.y) / 3}
	return []point{a, a.plus(third), a.plus(third).plus(third), b}
}

// curve writes a course as the commands of an SVG path.
func curve(path []point, at point) string {
	var b strings.Builder
	for i, p := range path {
		p = p.plus(at)
		command := " "
		switch i {
		case 0:
			command = "M"
		case 1:
			command = "C"
		}
		fmt.Fprintf(&b, "%s%s,%s", command, number(p.x), number(-p.y))
	}
	return b.String()
}

// number writes a measure in hundredths of a point.
func number(x float64) string {
	return strconv.FormatFloat(cmp.Or(math.Round(x*100)/100, 0), 'f', -1, 64)
}
