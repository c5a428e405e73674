package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// newCerts returns the commands about certificates.
func newCerts() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Create and show certificates for development and trials",
		Long: `A certificate names its holder by a URI among its alternative names,
tributary://ROLE/NAME. The roles are manager, agent (of the switch of that name),
host, and operator. Any authority can issue such certificates; the one that these
commands create keeps its key in a file, for development and trials only.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCertsInit(), newCertsAdd(), newCertsRevoke(), newCertsShow())
	return cmd
}

// holders are flags that name the holders of certificates.
type holders struct {
	names [4][]string // by the index of their role in pki.Roles
}

func (h *holders) flags(cmd *cobra.Command) {
	help := map[pki.Role]string{
		pki.Manager:  "`name` of a manager",
		pki.Agent:    "`name` of a switch, for its agent",
		pki.Host:     "`name` of a host",
		pki.Operator: "`name` of a person or a scheduler",
	}
	cmd.Flags().SortFlags = false
	for i, role := range pki.Roles() {
		cmd.Flags().StringSliceVar(&h.names[i], string(role), nil, help[role]+"; repeatable, or several separated by commas")
	}
}

func (h *holders) identities(cmd *cobra.Command) (all []pki.Identity, err error) {
	for i, role := range pki.Roles() {
		if cmd.Flags().Changed(string(role)) && len(h.names[i]) == 0 {
			return nil, fmt.Errorf("%w --%s: a name is wanted", errUsage, role)
		}
		for _, name := range h.names[i] {
			all = append(all, pki.Identity{Role: role, Name: name})
		}
	}
	return all, nil
}

func newCertsInit() *cobra.Command {
	var h holders
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Create an authority in a directory, and certificates of it",
		Long: `init creates an authority (` + pki.AuthorityFile + `, ` + pki.AuthorityKeyFile + `) and certificates with their
keys (ROLE-NAME.pem, ROLE-NAME-key.pem). It replaces no file. Give each process
its certificate, its key and ` + pki.AuthorityFile + `; keep ` + pki.AuthorityKeyFile + ` secret.`,
		Example: "  offload-manager certs init trust --manager m --agent leaf-0,leaf-1,spine-0 --host h0 --host h1 --operator me",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := h.identities(cmd)
			if err != nil {
				return err
			}
			return listFiles(cmd.OutOrStdout())(pki.Init(args[0], ids...))
		},
	}
	h.flags(cmd)
	return cmd
}

func newCertsAdd() *cobra.Command {
	var h holders
	cmd := &cobra.Command{
		Use:     "add DIR",
		Short:   "Create more certificates of the authority in a directory",
		Long:    "add creates certificates of the authority that init has created. It replaces no file: remove a file to renew it.",
		Example: "  offload-manager certs add trust --host h2",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := h.identities(cmd)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				return fmt.Errorf("%w: name at least one holder, such as --host NAME", errUsage)
			}
			return listFiles(cmd.OutOrStdout())(pki.Add(args[0], ids...))
		},
	}
	h.flags(cmd)
	return cmd
}

func newCertsRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke DIR [FILE...]",
		Short: "Revoke certificates of the authority in a directory",
		Long: `revoke adds certificates to the authority's revocation list, ` + pki.RevokedFile + `, and
prints its path. Give each process this file ("revoked" beside "authority"); within
5 seconds it closes connections of revoked certificates, and takes no new ones.
Without a FILE the list is made anew, with a later end.`,
		Example: "  offload-manager certs revoke trust trust/host-h2.pem",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := pki.Revoke(args[0], args[1:]...)
			if err != nil {
				return err
			}
			return listFiles(cmd.OutOrStdout())([]string{path}, nil)
		},
	}
}

// listFiles returns what writes the names of new files.
func listFiles(w io.Writer) func([]string, error) error {
	return func(paths []string, err error) error {
		for _, path := range paths {
			fmt.Fprintln(w, path)
		}
		return err
	}
}

func newCertsShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Print the certificates in a file",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			certs, err := pki.Inspect(args[0])
			if err != nil {
				return err
			}
			for i := range certs {
				showCert(cmd.OutOrStdout(), &certs[i])
			}
			return nil
		},
	}
}

func showCert(w io.Writer, c *pki.Info) {
	who := c.Identity.String()
	switch {
	case c.Authority:
		who = "authority"
	case c.NoIdentity != nil:
		who = "nobody: " + c.NoIdentity.Error()
	}
	var uses []string
	if c.Server {
		uses = append(uses, "server")
	}
	if c.Client {
		uses = append(uses, "client")
	}
	now := "valid now"
	if c.InTime != nil {
		now = c.InTime.Error()
	}
	fmt.Fprintf(w, "%s\n", who)
	fmt.Fprintf(w, "  subject  %s\n", c.Subject)
	fmt.Fprintf(w, "  issuer   %s\n", c.Issuer)
	fmt.Fprintf(w, "  serial   %s\n", c.Serial)
	fmt.Fprintf(w, "  valid    %s to %s (%s)\n", c.From.UTC().Format(time.RFC3339), c.Until.UTC().Format(time.RFC3339), now)
	if len(uses) > 0 {
		fmt.Fprintf(w, "  for      %s\n", strings.Join(uses, ", "))
	}
}
