package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// client is how a command reaches the manager.
type client struct {
	address string
	tls     settings.TLS
	timeout time.Duration
}

// fromEnvironment says where a flag's default may come from.
var fromEnvironment = map[string]string{
	"manager": "TRIBUTARY_MANAGER", "certificate": "TRIBUTARY_CERTIFICATE", "key": "TRIBUTARY_KEY", "authority": "TRIBUTARY_AUTHORITY",
}

// addClient adds the flags of a client to a command and those beneath it.
func addClient(cmd *cobra.Command) *client {
	c := new(client)
	flags := cmd.PersistentFlags()
	flags.SortFlags = false
	standard := cmp.Or(os.Getenv(fromEnvironment["manager"]), settings.DefaultManagerListen)
	flags.StringVar(&c.address, "manager", standard, "`address` of the manager; also "+fromEnvironment["manager"])
	addTLS(flags, &c.tls)
	flags.DurationVar(&c.timeout, "timeout", 10*time.Second, "give up after this `time`")
	return c
}

// addTLS adds the flags of an operator's certificate.
func addTLS(flags *pflag.FlagSet, tls *settings.TLS) {
	file := func(to *string, name, help string) {
		flags.StringVar(to, name, os.Getenv(fromEnvironment[name]), "`file` of "+help+"; also "+fromEnvironment[name])
	}
	file(&tls.Certificate, "certificate", "this operator's certificate")
	file(&tls.Key, "key", "its key")
	file(&tls.Authority, "authority", "the authorities' certificates")
}

// trustOf reads an operator's certificate; nil: there is none.
func trustOf(tls settings.TLS) (*pki.Source, error) {
	if tls.Given() && (tls.Certificate == "" || tls.Key == "" || tls.Authority == "") {
		return nil, fmt.Errorf("%w: --certificate, --key and --authority are needed together", errUsage)
	}
	return process.Trust(tls, slog.New(slog.DiscardHandler))
}

// call calls do with a connection to the manager.
func (c *client) call(ctx context.Context, do func(context.Context, *rpc.ManagerClient) error) (err error) {
	if c.timeout <= 0 {
		return fmt.Errorf("%w --timeout %v: it must be positive", errUsage, c.timeout)
	}
	if err := settings.CheckAddress(c.address); err != nil {
		return fmt.Errorf("%w --manager: %w", errUsage, err)
	}
	trust, err := trustOf(c.tls)
	if err != nil {
		return err
	}
	var how rpc.ClientConfig
	if trust != nil {
		how.Trust, how.TLS = trust, trust.Client(pki.Want{Role: pki.Manager})
	}
	m, err := rpc.DialManager(c.address, how)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	late := fmt.Errorf("no answer within %v (--timeout)", c.timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, late)
	defer cancel()
	err = do(ctx, m)
	if errors.Is(err, rpc.ErrUnavailable) {
		hint := ""
		if trust == nil {
			hint = " Where it wants certificates, --certificate, --key and --authority give them."
		}
		return fmt.Errorf("%w; is it running, and is %s its address (--manager, %s)?%s", err, c.address, fromEnvironment["manager"], hint)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case errors.Is(err, context.DeadlineExceeded): // the manager's clock was ahead
		return fmt.Errorf("%w: %w", late, err)
	}
	return err
}

// explain asks about the group that a word means. Who may not list groups, as a
// host with its certificate, names one in full.
func explain(ctx context.Context, m *rpc.ManagerClient, which string) (rpc.Explanation, error) {
	e, err := m.Explain(ctx, rpc.GroupRef{Name: which})
	if !errors.Is(err, manager.ErrUnknownGroup) {
		return e, err
	}
	if number, no := strconv.ParseUint(which, 10, 32); no == nil {
		byNumber, no := m.Explain(ctx, rpc.GroupRef{Group: uint32(number)})
		if !errors.Is(no, manager.ErrUnknownGroup) {
			return byNumber, no
		}
	}
	groups, failed := m.Groups(ctx)
	if failed != nil {
		return e, err
	}
	found, err := find(groups, which)
	if err != nil {
		return e, err
	}
	return m.Explain(ctx, rpc.GroupRef{Group: found.Group})
}

// errAmbiguous: a name may mean several groups.
var errAmbiguous = errors.New("the name is not that of one group")

// find returns the group that is called so or, if none is, has that number, or
// else is the only one whose name begins so. The host library's groups are called
// NAME/DIGEST: one of that NAME comes before others that begin so.
func find(groups []manager.Summary, which string) (g manager.Summary, err error) {
	number, noNumber := strconv.ParseUint(which, 10, 32)
	for _, means := range []func(manager.Summary) bool{
		func(g manager.Summary) bool { return g.Name == which },
		func(g manager.Summary) bool { return noNumber == nil && g.Group == uint32(number) },
		func(g manager.Summary) bool { return strings.HasPrefix(g.Name, which+"/") },
		func(g manager.Summary) bool { return strings.HasPrefix(g.Name, which) },
	} {
		found := slices.DeleteFunc(slices.Clone(groups), func(g manager.Summary) bool { return which == "" || !means(g) })
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return g, fmt.Errorf("%w: several begin with %q: %s", errAmbiguous, which, some(titles(found)))
		}
	}
	return g, fmt.Errorf("%w %q; %s", manager.ErrUnknownGroup, which, possible("groups", titles(groups)))
}

func titles(groups []manager.Summary) (all []string) {
	for _, g := range groups {
		all = append(all, fmt.Sprintf("%d (%s)", g.Group, g.Name))
	}
	return all
}

// among adds to an error about a switch's name those that are possible.
func among(ctx context.Context, m *rpc.ManagerClient, err error) error {
	if !errors.Is(err, manager.ErrUnknownSwitch) {
		return err
	}
	fabric, failed := m.Topology(ctx)
	if failed != nil {
		return err
	}
	var names []string
	for _, n := range fabric.Nodes {
		if n.Switch != nil {
			names = append(names, n.Name)
		}
	}
	return fmt.Errorf("%w; %s", err, possible("switches", names))
}

func possible(what string, names []string) string {
	if len(names) == 0 {
		return "it has no " + what
	}
	return "its " + what + ": " + some(names)
}

// formatFlag adds --format to a command.
func formatFlag(cmd *cobra.Command) *string {
	how := new(string)
	process.OneOf(cmd, how, "format", "output `format`: text, json", "text", "json")
	return how
}

// newList returns a command that lists what fetch gets from the manager.
func newList[T any](c *client, short string, fetch func(context.Context, *rpc.ManagerClient) ([]T, error), text func(io.Writer, []T) error) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: short, Args: cobra.NoArgs}
	how := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
			all, err := fetch(ctx, m)
			if err != nil {
				return err
			}
			if *how == "json" {
				return view.JSON(cmd.OutOrStdout(), all)
			}
			return text(cmd.OutOrStdout(), all)
		})
	}
	return cmd
}
