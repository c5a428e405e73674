package process

import (
	"fmt"
	"io"
	"strings"

	"github.com/tributary-fabric/tributary/internal/ground/printable"
)

// Check reports what is wrong with a file: its errors on a line each, and an
// error that counts them; or summary, if nothing is.
func Check(out, errs io.Writer, path string, err error, summary func() string) error {
	if err == nil {
		_, err := fmt.Fprintf(out, "%s: %s\n", path, summary())
		return err
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return err
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(errs, printable.Text(line)); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %d errors", path, len(lines))
}
