package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/version"
)

// Root gives a program's commands what they have in common: --version, and errors
// about arguments and flags that say what was wanted.
func Root(root *cobra.Command) *cobra.Command {
	root.Version = version.String() + " " + runtime.Version()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %q lists the flags", err, cmd.CommandPath()+" --help")
	})
	explainArguments(root)
	return root
}

func explainArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) == nil {
				return nil
			}
			usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
			names := placeholders(cmd.Use)
			if len(args) < len(names) {
				return fmt.Errorf("%s is missing; usage: %s", names[len(args)], usage)
			}
			return fmt.Errorf("the argument %q is too much; usage: %s", args[len(names)], usage)
		}
	}
	for _, c := range cmd.Commands() {
		explainArguments(c)
	}
}

// placeholders returns the names of a command's arguments, without its flags.
func placeholders(use string) (names []string) {
	words := strings.Fields(use)
	for i := 1; i < len(words); i++ {
		if strings.HasPrefix(words[i], "-") {
			i++ // and its value
			continue
		}
		names = append(names, strings.TrimSuffix(words[i], "..."))
	}
	return names
}

// output is the standard output, which remembers that a write has failed: most
// commands leave that to it.
type output struct {
	*os.File
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("writing the standard output: %w", errors.Unwrap(err))
	}
	return n, err
}

// Execute runs a program's command line under ctx. It fails, too, where the output
// could not be written.
func Execute(ctx context.Context, root *cobra.Command, stdout *os.File) error {
	out := &output{File: stdout}
	root.SetOut(out)
	root.SetErr(os.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil || errors.Is(err, errors.Unwrap(out.err)) && out.err != nil {
		return out.err
	}
	return err
}
