package process

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
)

// ErrUsage is wrapped by errors about flags.
var ErrUsage = errors.New("invalid flag")

// usageError is an error of the flags' package, whose text needs nothing.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }

// Parsed adds a flag whose text is read by parse, as the valid initial one is.
func Parsed[T any](flags *pflag.FlagSet, to *T, name, initial, usage string, parse func(string) (T, error)) {
	p := &parsed[T]{to: to, parse: parse}
	_ = p.Set(initial) // which is valid
	flags.Var(p, name, usage)
}

type parsed[T any] struct {
	to    *T
	text  string
	parse func(string) (T, error)
}

func (p *parsed[T]) String() string { return p.text }

func (p *parsed[T]) Type() string { return "string" }

func (p *parsed[T]) Set(text string) error {
	v, err := p.parse(text)
	if err == nil {
		*p.to, p.text = v, text
	}
	return err
}

// OneOf adds a flag that has one of some values, the first by default, and has
// shells complete it.
func OneOf(cmd *cobra.Command, to *string, name, usage string, values ...string) {
	Parsed(cmd.Flags(), to, name, values[0], usage, func(text string) (string, error) {
		if !slices.Contains(values, text) {
			return "", fmt.Errorf("possible are %s", strings.Join(values, ", "))
		}
		return text, nil
	})
	Choices(cmd, name, values...)
}

// Override sets what was given as a flag, by the flags' names, in place of what
// the configuration file has.
func Override(cmd *cobra.Command, to map[string]*string, log *settings.Log) error {
	to["log-level"], to["log-format"] = &log.Level, &log.Format
	for name, value := range to {
		if f := cmd.Flags().Lookup(name); f.Changed {
			*value = f.Value.String()
		}
	}
	if log.Format != "text" && log.Format != "json" {
		return fmt.Errorf("%w --log-format %q: text and json are possible", ErrUsage, log.Format)
	}
	return nil
}

// FormerFlag keeps a flag's former name, which the help does not list.
func FormerFlag(flags *pflag.FlagSet, former, now string) {
	flags.Var(flags.Lookup(now).Value, former, "")
	_ = flags.MarkHidden(former) // its only error is that there is no such flag
}

// Choices has shells complete a flag's value.
func Choices(cmd *cobra.Command, flag string, values ...string) {
	// Its only errors are that there is no such flag, or that this was done before.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// LogFlags adds --log-level and --log-format, which Override reads, and has shells
// complete their values.
func LogFlags(cmd *cobra.Command) {
	cmd.Flags().String("log-level", "", "debug, info, warn or error")
	cmd.Flags().String("log-format", "", "text or json")
	Choices(cmd, "log-level", "debug", "info", "warn", "error")
	Choices(cmd, "log-format", "text", "json")
}
