package terminal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
)

func TestColumns(t *testing.T) {
	var b strings.Builder
	table := terminal.NewTable(&b, 3)
	fmt.Fprint(table, "A title\n\nNAME\tSTATE\tIS\nh0\tup\t-\n東京-1\t"+terminal.Alert("down")+"\tsupervisor\nZürich\tup\t-\nThe end.\n\nX\tY\nlonger\t1\n")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = `A title

NAME     STATE   IS
h0       up      -
東京-1   down    supervisor
Zürich   up      -
The end.

X        Y
longer   1
`
	if b.String() != want {
		t.Errorf("it wrote\n%s\nwant\n%s", b.String(), want)
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "h0": 2, "東京": 4, "Zürich": 6, "e\u0301": 1, "ｈ": 2, "ｱ": 1, "한글": 4, terminal.Alert("x"): 1} {
		if got := terminal.Width(text); got != want {
			t.Errorf("%q is %d columns wide, want %d", text, got, want)
		}
	}
}
