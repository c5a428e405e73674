package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// answer is what a command has found out, in each of the forms in which it can be
// written.
type answer struct {
	json any
	text func(io.Writer) error
	svg  func(io.Writer) error
}

// output is how a command that can draw writes its answer: --format for the
// standard output, and --picture for a picture beside it.
type output struct {
	format, picture string
	file            *process.File // of the picture
}

// addOutput adds the flags of a command that can draw.
func addOutput(cmd *cobra.Command) *output {
	o := new(output)
	process.OneOf(cmd, &o.format, "format", "output `format`: text, json, svg", "text", "json", "svg")
	cmd.Flags().StringVar(&o.picture, "picture", "", "`file` for a picture as well, as SVG")
	return o
}

// begin opens the picture's file, so that what cannot be
// written fails before the work. The caller must end it.
func (o *output) begin() (err error) {
	if o.picture == "" {
		return nil
	}
	if o.file, err = process.Create(o.picture); err != nil {
		return fmt.Errorf("%w --picture: %w", errUsage, err)
	}
	return nil
}

// end gives a picture up that was not drawn: what was at its path stays.
func (o *output) end(err *error) {
	if o.file != nil {
		*err = errors.Join(*err, o.file.Discard())
	}
}

// write writes the answer to out, and its picture where it is wanted.
func (o *output) write(out io.Writer, a answer) error {
	if file := o.file; file != nil {
		if err := a.svg(file); err != nil {
			return fmt.Errorf("--picture: %w", err)
		}
		o.file = nil
		if err := file.Commit(); err != nil {
			return fmt.Errorf("--picture: %w", err)
		}
	}
	switch o.format {
	case "json":
		return view.JSON(out, a.json)
	case "svg":
		return a.svg(out)
	}
	return a.text(out)
}
