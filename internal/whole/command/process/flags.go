package process

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
)

// Override sets what was given as a flag, by the flags' names, in place of what
// the configuration file has. The error, about the format of the log, wraps
// usage.
func Override(cmd *cobra.Command, to map[string]*string, log *settings.Log, usage error) error {
	to["log-level"], to["log-format"] = &log.Level, &log.Format
	for name, value := range to {
		if f := cmd.Flags().Lookup(name); f.Changed {
			*value = f.Value.String()
		}
	}
	if log.Format != "text" && log.Format != "json" {
		return fmt.Errorf("%w --log-format %q: text and json are possible", usage, log.Format)
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
