package stp

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
)

// Write writes an instance as Read reads it, with its nodes numbered from 1, so
// that other programs can solve it. Limits are not written: the format has
// none. Edges of infinite cost are left out. The error is that of w.
func Write(w io.Writer, in *Instance) error {
	out := bufio.NewWriter(w)
	p := in.Problem
	edges := 0
	for _, c := range p.Cost {
		if !math.IsInf(c, 1) {
			edges++
		}
	}
	fmt.Fprintf(out, "33D32945 STP File, STP Format Version 1.0\n\nSECTION Comment\nName \"%s\"\nEND\n\n", plain(in.Name))
	fmt.Fprintf(out, "SECTION Graph\nNodes %d\nEdges %d\n", p.Graph.Nodes(), edges)
	for e, ends := range p.Graph.Ends() {
		if c := p.Cost[e]; !math.IsInf(c, 1) {
			fmt.Fprintf(out, "E %d %d %v\n", ends[0]+1, ends[1]+1, c)
		}
	}
	fmt.Fprintf(out, "END\n\nSECTION Terminals\nTerminals %d\n", len(p.Terminals))
	for _, t := range p.Terminals {
		fmt.Fprintf(out, "T %d\n", t+1)
	}
	fmt.Fprint(out, "END\n\nEOF\n")
	return out.Flush()
}

// plain returns name without what would end the line or the quotes.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '"' || r < ' ' {
			return '_'
		}
		return r
	}, name)
}
