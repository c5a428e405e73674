package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-fabric/tributary/internal/ground/version"
)

// Root gives a program's commands what they have in common: --version and version,
// and errors about commands, arguments and flags that say what was wanted.
func Root(root *cobra.Command) *cobra.Command {
	root.Version = version.String() + " " + runtime.Version()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; %q lists the flags", err, cmd.CommandPath()+" --help")}
	})
	Family(root, newVersion())
	explainArguments(root)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), cmd.Root().Name(), cmd.Root().Version)
			return err
		},
	}
}

// Family adds commands to one that only holds commands together.
func Family(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(members...)
	cmd.Args = cobra.ArbitraryArgs // what is no command of its own comes as one
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var names []string
		for _, m := range cmd.Commands() {
			if m.IsAvailableCommand() && m.Name() != "help" {
				names = append(names, m.Name())
			}
		}
		return fmt.Errorf("unknown command %q for %q; possible are %s", args[0], cmd.CommandPath(), strings.Join(names, ", "))
	}
	return cmd
}

func explainArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
			if check(cmd, args) == nil {
				return missingFlag(cmd, usage)
			}
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

// missingFlag returns an error about a flag that must be given and is not.
func missingFlag(cmd *cobra.Command, usage string) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if must := f.Annotations[cobra.BashCompOneRequiredFlag]; len(must) > 0 && must[0] == "true" && !f.Changed && err == nil {
			err = fmt.Errorf("--%s is missing; usage: %s", f.Name, usage)
		}
	})
	return err
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
