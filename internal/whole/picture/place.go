package picture

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// point is a place on the page: in points, y upwards.
type point struct{ x, y float64 }

func (p point) plus(q point) point { return point{p.x + q.x, p.y + q.y} }

// The measures of the drawing, in points.
const (
	switchFont   = 11.0
	hostFont     = 9.5
	switchHeight = 32.0
	hostHeight   = 18.0
	lineHeight   = 12.0
	crossSize    = 11.0 // of the mark of what is down
	gapInBlock   = 7.0  // between hosts of one switch
	gapOfBlocks  = 26.0 // between the hosts of one switch and those of the next
	gapOfRow     = 22.0 // between switches of an upper row, at least
	rowPitch     = 92.0 // from one row of switches to the next
	liftPitch    = 84.0 // from a row to its lifted one
	hostDrop     = 58.0 // from a switch's centre to its hosts'
	fanDrop      = 34.0 // more, where the hosts stand in several ranks
	wide         = 6    // hosts in one rank, at most
	maxRanks     = 3
)

// place gives every box its size and its place.
func (s *sheet) place() {
	s.measure()
	s.lift()
	foot := s.placeBlocks()
	s.placeRows(foot)
}

// trim moves the drawing, with its links, to where its lowest left corner is
// (0, 0), and sets its size.
func (s *sheet) trim() {
	var low, high point
	for i, b := range s.boxes {
		if i == 0 {
			low, high = b.at, b.at
		}
		low = point{min(low.x, b.at.x-b.w/2), min(low.y, b.at.y-b.h/2)}
		high = point{max(high.x, b.at.x+b.w/2), max(high.y, b.at.y+b.h/2)}
	}
	for _, w := range s.wires {
		for _, p := range w.path { // a curve lies within its control points
			low, high = point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
		}
	}
	off := point{-low.x, -low.y}
	for i := range s.boxes {
		s.boxes[i].at = s.boxes[i].at.plus(off)
	}
	for _, w := range s.wires {
		for i := range w.path {
			w.path[i] = w.path[i].plus(off)
		}
	}
	s.size = high.plus(off)
}

// measure sizes the boxes; those of one kind are equal.
func (s *sheet) measure() {
	var host, other float64
	for _, b := range s.boxes {
		mark := 0.0
		if b.role == broken {
			mark = crossSize / 2
		}
		for line := range strings.Lines(b.label) {
			line = strings.TrimSuffix(line, "\n")
			if b.isHost {
				host = max(host, extent(line, regular, hostFont)+7+mark)
			} else {
				other = max(other, extent(line, regular, switchFont)+14+mark, 58)
			}
		}
	}
	for i := range s.boxes {
		b := &s.boxes[i]
		b.w, b.h = other, switchHeight
		if b.isHost {
			b.w, b.h = host, hostHeight+lineHeight*float64(strings.Count(b.label, "\n"))
		}
	}
}

// lift raises a switch above its tree's children in the same layer.
func (s *sheet) lift() {
	t := s.scene.Tree
	for i := len(t.Vertices) - 1; i > 0; i-- {
		child, parent := &s.boxes[s.byNode[t.Vertices[i].Switch]], &s.boxes[s.byNode[t.Vertices[t.Vertices[i].Parent].Switch]]
		if child.layer == parent.layer {
			parent.lift = max(parent.lift, child.lift+1)
		}
	}
}

// blocks returns the switches that have hosts beneath them or are in the lowest
// layer, from left to right: a lifted one in the middle of the others.
func (s *sheet) blocks(hosts map[int][]int) []int {
	var low, lifted []int
	for i, b := range s.boxes {
		switch {
		case b.isHost || len(hosts[i]) == 0 && b.layer > 1:
		case b.lift > 0:
			lifted = append(lifted, i)
		default:
			low = append(low, i)
		}
	}
	return slices.Insert(low, (len(low)+1)/2, lifted...)
}

// placeBlocks places the hosts, block by block, and the columns of the switches
// above them. It returns the height at which the rows of switches begin.
func (s *sheet) placeBlocks() (foot float64) {
	hosts := s.hostsOf()
	ranks, height := 0, 0.0
	for _, list := range hosts {
		ranks, height = max(ranks, ranksOf(len(list))), max(height, s.boxes[list[0]].h)
	}
	pitch := height + 7
	x := 0.0
	for _, i := range s.blocks(hosts) {
		b := &s.boxes[i]
		own := s.blockWidth(hosts[i])
		w := max(own, b.w)
		s.placeHosts(hosts[i], x+(w-own)/2, ranks, pitch)
		b.at.x = x + w/2
		x += w + gapOfBlocks
	}
	s.placeHosts(hosts[-1], x, ranks, pitch)
	foot = float64(max(ranks-1, 0))*pitch + hostDrop + (height-hostHeight)/2
	if ranks > 1 {
		foot += fanDrop
	}
	return foot
}

// ranksOf returns in how many ranks n hosts stand.
func ranksOf(n int) int { return min((n+wide-1)/wide, maxRanks) }

// stepOf returns the distance of the hosts of a block along x. In several ranks
// the links of the lower ones pass between the boxes of the upper.
func (s *sheet) stepOf(list []int) float64 {
	w := s.boxes[list[0]].w
	if r := ranksOf(len(list)); r > 1 {
		return max(w/2+4, (w+gapInBlock)/float64(r))
	}
	return w + gapInBlock
}

func (s *sheet) blockWidth(list []int) float64 {
	if len(list) == 0 {
		return 0
	}
	return s.stepOf(list)*float64(len(list)-1) + s.boxes[list[0]].w
}

// placeHosts places the hosts of a block from x on.
func (s *sheet) placeHosts(list []int, x float64, ranks int, pitch float64) {
	for i, h := range list {
		b := &s.boxes[h]
		b.at = point{x + b.w/2 + float64(i)*s.stepOf(list), float64(ranks-1-i%ranksOf(len(list))) * pitch}
	}
}

// row is where a switch stands: its layer and its lift.
type row struct{ layer, lift int }

// placeRows places the switches above the hosts, row by row.
func (s *sheet) placeRows(foot float64) {
	hosts := s.hostsOf()
	rows := map[row][]int{}
	for i, b := range s.boxes {
		if !b.isHost {
			r := row{max(b.layer, 1), b.lift}
			rows[r] = append(rows[r], i)
		}
	}
	order := slices.SortedFunc(maps.Keys(rows), func(a, b row) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.lift, b.lift))
	})
	y := foot
	for i, r := range order {
		if i > 0 && r.lift > 0 {
			y += liftPitch
		} else if i > 0 {
			y += rowPitch
		}
		var free []int
		for _, b := range rows[r] {
			s.boxes[b].at.y = y
			if r.layer > 1 && len(hosts[b]) == 0 {
				free = append(free, b)
			}
		}
		s.spread(free, y)
	}
}

// spread places switches of one row as near as they can be to the middle of
// what they are linked to in the rows beneath (isotonic regression by pooling).
func (s *sheet) spread(list []int, y float64) {
	want := make([]float64, len(s.boxes))
	for _, b := range list {
		want[b] = s.middle(b, y)
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(want[a], want[b]) })
	type pool struct{ sum, n float64 } // of switches that stand shoulder to shoulder
	var pools []pool
	for i, b := range list {
		pools = append(pools, pool{want[b] - float64(i)*s.shoulder(b), 1})
		for k := len(pools) - 1; k > 0 && pools[k].sum/pools[k].n <= pools[k-1].sum/pools[k-1].n; k-- {
			pools[k-1].sum += pools[k].sum
			pools[k-1].n += pools[k].n
			pools = pools[:k]
		}
	}
	i := 0
	for _, p := range pools {
		for range int(p.n) {
			s.boxes[list[i]].at.x = p.sum/p.n + float64(i)*s.shoulder(list[i])
			i++
		}
	}
}

// shoulder is the least distance of two switches in a row.
func (s *sheet) shoulder(b int) float64 { return s.boxes[b].w + gapOfRow }

// middle returns the mean place of what switch b is linked to below y.
func (s *sheet) middle(b int, y float64) float64 {
	sum, n := 0.0, 0.0
	for _, w := range s.wires {
		for _, ends := range [][2]int{{w.lower, w.upper}, {w.upper, w.lower}} {
			if other := &s.boxes[ends[1]]; ends[0] == b && other.at.y < y && (other.isHost || other.layer < s.boxes[b].layer) {
				sum += other.at.x
				n++
			}
		}
	}
	return sum / max(n, 1)
}
