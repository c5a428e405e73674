package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// errEdit: what was edited was not put into effect.
var errEdit = errors.New("nothing was changed")

// edit has the operator's part of the topology changed in an editor, and sets what is
// saved. What cannot be is opened again, with the error in it as a comment.
func (f *changeFlags) edit(cmd *cobra.Command) error {
	var was rpc.TopologyFile
	err := f.client.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) (err error) {
		was, err = m.TopologyFile(ctx, false)
		return err
	})
	if err != nil {
		return err
	}
	if f.version != 0 && f.version != was.Version {
		return otherVersion(was.Version, f.version)
	}
	f.version = was.Version
	path, err := temporary()
	if err != nil {
		return err
	}
	body, wrong, err := was.Content, error(nil), error(nil)
	for before := []byte(nil); ; before = body {
		body, err = edited(cmd, path, append(f.head(path, body, wrong), body...))
		if err != nil {
			return errors.Join(fmt.Errorf("%w: %w", errEdit, err), os.Remove(path))
		}
		if len(bytes.TrimSpace(body)) == 0 || bytes.Equal(body, was.Content) {
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "%v: nothing was edited\n", errEdit)
			return errors.Join(err, os.Remove(path))
		}
		if wrong != nil && bytes.Equal(body, before) {
			return fmt.Errorf("%w: %w; what was edited is in %s", errEdit, wrong, path)
		}
		if wrong = f.set(cmd, path, body); wrong == nil {
			return os.Remove(path)
		}
		if !errors.Is(wrong, rpc.ErrTopology) {
			return fmt.Errorf("%w; what was edited is in %s", wrong, path)
		}
	}
}

// temporary makes an empty topology file.
func temporary() (path string, err error) {
	file, err := os.CreateTemp("", "topology-*.yaml")
	if err != nil {
		return "", err
	}
	return file.Name(), file.Close()
}

// set puts what was edited into effect.
func (f *changeFlags) set(cmd *cobra.Command, path string, body []byte) error {
	if _, err := topology.Read(bytes.NewReader(body), path); err != nil {
		return fmt.Errorf("%w: %w", rpc.ErrTopology, err)
	}
	file, err := f.file(path, body)
	if err != nil {
		return err
	}
	return f.run(cmd, file, f.title(), func(m *rpc.ManagerClient, ctx context.Context, file rpc.TopologyFile) (rpc.TopologyDifference, error) {
		if file.Version == 0 { // which means any
			if is, err := m.TopologyFile(ctx, false); err != nil || is.Version != 0 {
				return rpc.TopologyDifference{}, cmp.Or(err, otherVersion(is.Version, 0))
			}
		}
		return m.SetTopology(ctx, file)
	})
}

func otherVersion(is, wanted uint64) error {
	return fmt.Errorf("%w: it is version %d, and not %d", rpc.ErrVersion, is, wanted)
}

// head returns the comment above the file, with what is wrong with it.
func (f *changeFlags) head(path string, body []byte, wrong error) []byte {
	text := fmt.Sprintf(`The operator's part of the topology, version %d, in the format of docs/topology.md.
Save it to put it into effect; leave it as it is, or empty, to change nothing.
`, f.version)
	if wrong != nil {
		text += "It was not accepted:\n"
		above := bytes.Repeat([]byte("\n"), strings.Count(text, "\n")+strings.Count(wrong.Error(), "\n")+1)
		if _, err := topology.Read(bytes.NewReader(append(above, body...)), path); err != nil {
			wrong = err // with the lines that it has below the comment
		}
		text += wrong.Error() + "\n"
	}
	var b bytes.Buffer
	for line := range strings.Lines(text) {
		b.WriteString("# " + line)
	}
	return b.Bytes()
}

// edited has a text edited at a path, and returns what was saved below the comment at its
// head.
func edited(cmd *cobra.Command, path string, text []byte) ([]byte, error) {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	editor := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	run := exec.CommandContext(cmd.Context(), editor[0], append(editor[1:], path)...)
	run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := run.Run(); err != nil {
		return nil, fmt.Errorf("editor %s: %w", strings.Join(editor, " "), err)
	}
	saved, err := os.ReadFile(path)
	for bytes.HasPrefix(saved, []byte("#")) {
		_, saved, _ = bytes.Cut(saved, []byte("\n"))
	}
	return saved, err
}
