package p4_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/reduce"
)

// A writer writes scenes at random: lines in which most packets are those of a
// group that works, many come twice, late or out of order, and some are wrong
// in one way or another. The same seed writes the same scene.
type writer struct {
	r        *rand.Rand
	children int
	ranks    []int
	parent   bool
	window   uint32
	chunk    int
	epochs   []uint32 // installed
	base     uint32   // oldest number of interest
	ops      map[uint32]string
	blocks   bool     // many chunks are of block32
	longest  int      // elements of a chunk at most; 0: as many as fit
	plot     []string // lines to come, by which a chunk gets its result
}

func newWriter(seed uint64) *writer {
	w := &writer{r: rand.New(rand.NewPCG(seed, 2)), ops: map[uint32]string{}}
	w.children = 1 + w.r.IntN(6)
	if w.one(5) {
		w.children = p4.BlockChildren - 1 + w.r.IntN(3)
	}
	w.blocks = w.one(2)
	rank := w.r.IntN(3)
	for range w.children {
		w.ranks = append(w.ranks, rank)
		rank += 1 + w.r.IntN(3)
	}
	w.parent = w.r.IntN(3) > 0
	w.window = 1 << w.r.IntN(3)
	w.chunk = []int{16, 64, 300, 1432}[w.r.IntN(4)]
	if w.r.IntN(4) == 0 {
		w.base = uint32(0xfffffff0 + w.r.IntN(16)) // numbers wrap
	}
	return w
}

// one returns true once in n times.
func (w *writer) one(n int) bool { return w.r.IntN(n) == 0 }

func (w *writer) install() string {
	epoch := uint32(2)
	if n := len(w.epochs); n > 0 {
		epoch = w.epochs[n-1] + 2*uint32(1+w.r.IntN(2))
	}
	w.epochs = append(w.epochs, epoch)
	if w.one(2) { // a window that grows or shrinks
		w.window = 1 << w.r.IntN(4)
	}
	line := fmt.Sprintf("install epoch=%d window=%d probes=%d chunk=%d index=%d cookies=%d children=%s", epoch, w.window,
		w.r.IntN(3), w.chunk, w.r.IntN(4), w.r.Uint32(), strings.Trim(strings.ReplaceAll(fmt.Sprint(w.ranks), " ", ","), "[]"))
	if w.parent {
		line += " parent=yes"
	}
	return line
}

// next returns the next line.
func (w *writer) next() string {
	switch {
	case len(w.epochs) == 0 || len(w.epochs) < 4 && w.one(150):
		return w.install()
	case len(w.epochs) == 4 && w.one(400):
		return fmt.Sprintf("retire epoch=%d", w.epochs[w.r.IntN(3)])
	}
	if !w.one(3) {
		if len(w.plot) == 0 {
			w.base++
			w.unfold(w.base)
		}
		line := w.plot[0]
		w.plot = w.plot[1:]
		return line
	}
	n := w.base + uint32(w.r.IntN(int(w.window)+1)) - w.window/2
	if w.one(25) {
		n = w.base - uint32(w.r.IntN(int(4*w.window)))
	}
	line := w.packet(n)
	if w.one(12) {
		// A packet that is too short and whose frame is, too, is dropped for either.
		if word := w.wrong(); word != "damage=frame" || !strings.Contains(line, "cut=") {
			line += " " + word
		}
	} else if w.one(12) {
		line += " " + w.forgery()
	}
	if len(w.epochs) > 1 && w.one(20) {
		line += fmt.Sprintf(" epoch=%d", w.epochs[w.r.IntN(len(w.epochs))])
	}
	return line
}

// unfold adds the lines by which chunk n gets its result, if nothing comes
// between: contributions in any order, probes, what the parent answers.
func (w *writer) unfold(n uint32) {
	op := w.operation(n)
	children := w.r.Perm(w.children)
	for _, c := range children {
		child := string(rune('a' + c))
		if w.one(4) {
			w.plot = append(w.plot, fmt.Sprintf("%s probe %d", child, n))
		}
		w.plot = append(w.plot, fmt.Sprintf("%s contribution %d %s seed=%d", child, n, op, w.r.IntN(1000)))
	}
	for w.parent && !w.one(3) {
		w.plot = append(w.plot, fmt.Sprintf("%s probe %d", string(rune('a'+w.r.IntN(min(2, w.children)))), n))
		if w.one(2) {
			w.plot = append(w.plot, fmt.Sprintf("p %s %d", []string{"heard", "want", "want", "lost"}[w.r.IntN(4)], n))
		}
	}
	if w.parent && !w.one(8) {
		seed := w.r.IntN(1000) // one of the two fits
		w.plot = append(w.plot, fmt.Sprintf("p result %d %s seed=%d nosink", n, op, seed), fmt.Sprintf("p result %d %s seed=%d sink", n, op, seed))
	}
	for !w.one(3) {
		w.plot = append(w.plot, fmt.Sprintf("%s probe %d", string(rune('a'+w.r.IntN(w.children))), n))
	}
}

// neighbour returns the name of a child, or of the parent.
func (w *writer) neighbour() byte {
	if w.one(3) {
		return 'p'
	}
	return 'a' + byte(w.r.IntN(w.children))
}

func (w *writer) packet(n uint32) string {
	child := string(rune('a' + w.r.IntN(w.children)))
	switch k := w.r.IntN(20); {
	case k < 11:
		return w.contribution(child, n)
	case k < 14:
		line := fmt.Sprintf("%s probe %d", child, n)
		if w.one(4) && ^n != 0 { // that one would be settled, which the program passes on as plain
			line += " idle"
		}
		return line
	case k < 17:
		return fmt.Sprintf("p result %d %s seed=%d", n, w.operation(n), w.r.IntN(1000)) + []string{"", "", "", " nosink"}[w.r.IntN(4)]
	case k < 19:
		return fmt.Sprintf("p %s %d", []string{"heard", "want", "lost"}[w.r.IntN(3)], n)
	}
	from := []string{child, child, "p"}[w.r.IntN(3)]
	line := fmt.Sprintf("%s error %d %s", from, n, []string{"mismatch", "two-sources", "no-source"}[w.r.IntN(3)])
	return line + []string{"", "", "", " kind=0", " kind=4", " root=0", " root=3", " cut=79"}[w.r.IntN(8)]
}

// contribution is a child's to what the group agrees upon for n, mostly.
func (w *writer) contribution(child string, n uint32) string {
	op := w.operation(n)
	if w.one(30) {
		op = w.draw()
	}
	line := fmt.Sprintf("%s contribution %d %s seed=%d", child, n, op, w.r.IntN(1000))
	if w.one(30) {
		line += " source"
	}
	switch {
	case w.one(10):
		line += " nosink"
	case w.one(6):
		line += " sink" // of a part, maybe
	}
	return line
}

// operation returns what the group agrees upon for n.
func (w *writer) operation(n uint32) string {
	if w.ops[n] == "" {
		w.ops[n] = w.draw()
	}
	return w.ops[n]
}

func (w *writer) draw() string {
	op := fmt.Sprintf(" op=%d", w.r.IntN(3))
	root := w.ranks[w.r.IntN(w.children)]
	if w.one(6) {
		root = 1000 // elsewhere in the group
	}
	switch w.r.IntN(10) {
	case 0:
		return "barrier" + op
	case 1, 2:
		e := reduce.Int32 + reduce.Type(w.r.IntN(int(reduce.BFloat16)))
		return fmt.Sprintf("broadcast:%d %v", root, e) + op + w.elements(e.Size())
	}
	f, e := reduce.NoFunction, reduce.NoType
	if w.blocks && w.one(2) {
		f, e = reduce.Sum, reduce.Block32
	}
	for !reduce.Defined(f, e) || !w.one(5) && !pipelined(f, e) {
		f = reduce.Sum + reduce.Function(w.r.IntN(int(reduce.MaxLoc)))
		e = reduce.Int32 + reduce.Type(w.r.IntN(int(reduce.Block32)))
	}
	kind := "allreduce"
	if w.one(3) {
		kind = fmt.Sprintf("reduce:%d", root)
	}
	return fmt.Sprintf("%s %v %v", kind, f, e) + op + w.elements(reduce.ElementSize(f, e))
}

// pipelined reports whether the pipeline itself does f on e, of block32 in the
// slots and of as many children as it does.
func pipelined(f reduce.Function, e reduce.Type) bool {
	floats := e >= reduce.Float32 && e != reduce.Block32
	return f != reduce.Product && !f.Located() && !(f == reduce.Sum && floats)
}

// elements returns how many, which seldom are more than the epoch's chunk can
// hold, and none now and then.
func (w *writer) elements(size int) string {
	most := w.chunk / size
	n := most
	switch {
	case w.one(12):
		return " of=0 count=0"
	case w.one(40):
		n = most + 1
	case !w.one(3):
		n = 1 + w.r.IntN(most)
	}
	if w.longest > 0 {
		n = min(n, w.longest)
	}
	return fmt.Sprintf(" of=%d count=%d", n+w.r.IntN(3), n)
}

// forgery returns a word by which a packet comes in by another port, or has another
// neighbour's cookie; or those that it should, by chance.
func (w *writer) forgery() string {
	if w.one(3) {
		return fmt.Sprintf("port=%d", 1+w.r.IntN(3))
	}
	return "secret=" + string(w.neighbour())
}

// wrong returns a word that makes most packets wrong.
func (w *writer) wrong() string {
	words := []string{
		"cookie=1", "group=8", "reserved=2", "epoch=1", "epoch=3", "epoch=1000", "child=%d", "version=2", "version=0",
		"type=%d", "flags=%d", "exponent=1", "cut=%d", "pad=%d", "function=%d", "element=%d", "collective=%d",
		"damage=udp", "damage=ip", "damage=frame", "damage=none",
	}
	word := words[w.r.IntN(len(words))]
	if strings.Contains(word, "%d") {
		most := map[string]int{"cut=%d": 60, "flags=%d": 17, "type=%d": 16, "function=%d": 16, "element=%d": 12, "collective=%d": 8}[word]
		return fmt.Sprintf(word, 1+w.r.IntN(max(most, 6)-1))
	}
	return word
}
