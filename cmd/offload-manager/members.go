package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/membership"
)

// maxStatus bounds the bytes of a node's answer: thousands of members, and
// millions in the zones' census.
const maxStatus = 64 << 20

// membersFlags are the flags of members.
type membersFlags struct {
	node    string
	watch   bool
	every   time.Duration
	timeout time.Duration
}

func newMembers() *cobra.Command {
	var f membersFlags
	cmd := &cobra.Command{
		Use:   "members --node ADDRESS",
		Short: "Show the live nodes of a zone, as one node sees them",
		Long: `members queries a node of a zone at its admin address: a manager with "membership"
in its configuration, "members join", or a service that serves membership's page.
It prints the zone's members, suspicions, monitors and watchers; of a management
node, also the census of all zones. It works without a manager.`,
		Example: "  offload-manager members --node 127.0.0.1:7480\n  offload-manager members --node 127.0.0.1:7480 --watch",
		Args:    cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.node, "node", "", "admin `address` (host:port) of the node")
	flags.BoolVar(&f.watch, "watch", false, "repeat until interrupted")
	flags.DurationVar(&f.every, "every", time.Second, "`time` between two queries of --watch")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "give up a query after this `time`")
	_ = cmd.MarkFlagRequired("node") // its only error is that there is no such flag
	how := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		if f.watch {
			return f.follow(cmd.Context(), *how, cmd.OutOrStdout())
		}
		s, err := f.ask(cmd.Context())
		if err != nil {
			return err
		}
		return writeStatus(cmd.OutOrStdout(), *how, s)
	}
	cmd.AddCommand(newMembersJoin(), newMembersCheck())
	return cmd
}

func (f *membersFlags) check() error {
	if err := settings.CheckAddress(f.node); err != nil {
		return fmt.Errorf("%w --node: %w", errUsage, err)
	}
	if f.every <= 0 || f.timeout <= 0 {
		return fmt.Errorf("%w: --every %v and --timeout %v must be positive", errUsage, f.every, f.timeout)
	}
	return nil
}

// ask gets a node's status.
func (f *membersFlags) ask(ctx context.Context) (s membership.Status, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("no answer within %v (--timeout)", f.timeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.node+membership.StatusPage, nil)
	if err != nil {
		return s, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return s, fmt.Errorf("%w; is %s the admin address of a process that runs (--node)?", err, f.node)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxStatus))
	switch {
	case err != nil:
		return s, err
	case answer.StatusCode == http.StatusNotFound:
		return s, fmt.Errorf("the process at %s is no node of a zone", f.node)
	case answer.StatusCode != http.StatusOK:
		return s, fmt.Errorf("the process at %s: %s: %s", f.node, answer.Status, strings.TrimSpace(string(text)))
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the answer of %s: %w", f.node, err)
	}
	return s, nil
}

// home has a terminal write from its upper left corner on, and forget the rest.
const home = "\x1b[H\x1b[2J"

// follow writes the status again and again. A node that does not answer may do so later.
func (f *membersFlags) follow(ctx context.Context, format string, out io.Writer) error {
	clear := ""
	if isTerminal(out) && format == "text" {
		clear = home
	}
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		s, err := f.ask(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if _, err := io.WriteString(out, clear); err != nil {
			return err
		}
		if err == nil {
			err = writeStatus(out, format, s)
		} else {
			_, err = fmt.Fprintln(out, err)
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// writeStatus writes a status: as a table, or as one line of JSON.
func writeStatus(out io.Writer, format string, s membership.Status) error {
	if format == "json" {
		return json.NewEncoder(out).Encode(s)
	}
	return view.MembersText(out, s)
}

// isTerminal reports whether out is a screen and not a file or a pipe.
func isTerminal(out io.Writer) bool {
	f, ok := out.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
