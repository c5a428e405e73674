package process_test

import (
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// A flag has its initial value, takes what its function takes, and refuses the rest
// with the function's reason.
func TestFlagsThatAreRead(t *testing.T) {
	for _, c := range []struct {
		args   []string
		number int
		word   string
		wrong  string
	}{
		{nil, 1, "one", ""},
		{[]string{"--number", "7", "--word", "two"}, 7, "two", ""},
		{[]string{"--number", "x"}, 1, "one", `invalid argument "x" for "--number" flag: strconv.Atoi: parsing "x": invalid syntax; "prog --help" lists the flags`},
		{[]string{"--word", "three"}, 1, "one", `invalid argument "three" for "--word" flag: possible are one, two; "prog --help" lists the flags`},
	} {
		var number int
		var word string
		cmd := &cobra.Command{Use: "prog", SilenceUsage: true, SilenceErrors: true}
		process.Root(cmd)
		process.Parsed(cmd.Flags(), &number, "number", "1", "a number", strconv.Atoi)
		process.OneOf(cmd, &word, "word", "a word", "one", "two")
		cmd.SetArgs(append([]string{}, c.args...))
		cmd.SetOut(io.Discard)
		err := cmd.Execute()
		if number != c.number || word != c.word || errors.Is(err, process.ErrUsage) != (c.wrong != "") || err != nil && err.Error() != c.wrong {
			t.Errorf("%q: %d, %s, %v", c.args, number, word, err)
		}
	}
}
