package process

import (
	"fmt"
	"io"
	"strings"
)

// Check tells what is wrong with a file: its errors on a line each, and an
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
	if _, err := fmt.Fprintln(errs, strings.Join(lines, "\n")); err != nil {
		return err
	}
	return fmt.Errorf("%s: %d errors", path, len(lines))
}
