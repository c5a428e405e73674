// Gen writes the kernels of package asm: for each instruction set a file of
// assembly and one of Go declarations, into the directory above this one.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	for _, s := range []set{avx2, avx512} {
		if err := write("..", s); err != nil {
			fmt.Fprintf(os.Stderr, "kernels of %v: %v\n", s, err)
			os.Exit(1)
		}
	}
}

// write writes the two files of the set s.
func write(dir string, s set) error {
	m := &machine{Context: build.NewContext(), set: s}
	m.ConstraintExpr("!noasm")
	if s == avx2 {
		m.identify()
	}
	for _, k := range kernels() {
		m.generate(k)
	}
	for _, t := range []element{float16s, bfloat16s} {
		m.narrow(t, true)
		m.narrow(t, false)
	}
	m.largest()
	for _, size := range []int{4, 8} {
		m.mark(size)
	}
	for _, encodes := range []bool{true, false} {
		m.fixed(4, 4, encodes)
		m.fixed(4, 8, encodes)
		m.fixed(8, 8, encodes)
	}
	file, err := m.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	config := printer.Config{Name: "go generate", Pkg: "asm"}
	for name, p := range map[string]printer.Printer{
		s.file() + "_amd64.s":  printer.NewGoAsm(config),
		s.file() + "_amd64.go": printer.NewStubs(config),
	} {
		text, err := p.Print(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
