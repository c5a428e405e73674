package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func program() *cobra.Command {
	root := &cobra.Command{Use: "prog", SilenceUsage: true, SilenceErrors: true}
	none := &cobra.Command{Use: "none --config FILE", Args: cobra.NoArgs, Run: func(*cobra.Command, []string) {}}
	none.Flags().String("config", "", "configuration")
	_ = none.MarkFlagRequired("config")
	root.AddCommand(
		&cobra.Command{Use: "one FILE", Args: cobra.ExactArgs(1), Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "done") }},
		none,
		&cobra.Command{Use: "many NAME HOST...", Args: cobra.MinimumNArgs(2), Run: func(*cobra.Command, []string) {}},
	)
	return process.Root(root)
}

func TestArgumentsAreNamed(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"one", "FILE is missing; usage: prog one FILE"},
		{"one a b", `the argument "b" is too much; usage: prog one FILE`},
		{"none x", `the argument "x" is too much; usage: prog none --config FILE`},
		{"many a", "HOST is missing; usage: prog many NAME HOST..."},
		{"one --flag a", `unknown flag: --flag; "prog one --help" lists the flags`},
		{"none", "--config is missing; usage: prog none --config FILE"},
		{"tow a", `unknown command "tow" for "prog"; possible are completion, many, none, one, version`},
	} {
		root := program()
		root.SetArgs(strings.Fields(c.args))
		if err := root.Execute(); err == nil || err.Error() != c.says {
			t.Errorf("%s: %v, want %s", c.args, err, c.says)
		}
	}
	for _, how := range []string{"--version", "version"} {
		var out strings.Builder
		root := program()
		root.SetArgs([]string{how})
		root.SetOut(&out)
		if err := root.Execute(); err != nil || !strings.HasPrefix(out.String(), "prog ") || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: %q, %v", how, out.String(), err)
		}
	}
}

// A command whose output cannot be written has failed, whatever it made of that.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	root := program()
	root.SetArgs([]string{"one", "file"})
	if err := process.Execute(t.Context(), root, full); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "standard output") {
		t.Errorf("%v", err)
	}
}

// What a signal ends has its status, and one short line.
func TestInterrupted(t *testing.T) {
	var line strings.Builder
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		line.Reset()
		status := process.Supervise(&line, "prog", func(ctx context.Context) error {
			if err := syscall.Kill(os.Getpid(), signal); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			return errors.Join(ctx.Err(), errors.New("of much"), errors.New("else"))
		})
		if status != want || line.String() != "prog: interrupted\n" {
			t.Errorf("%v: status %d, %q", signal, status, line.String())
		}
	}
	line.Reset()
	if status := process.Supervise(&line, "prog", func(context.Context) error { return errors.New("a \x1b[31m\nb") }); status != 1 || line.String() != "prog: a \\x1b[31m; b\n" {
		t.Errorf("status %d, %q", status, line.String())
	}
}
