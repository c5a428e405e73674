package rail

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

const picture = "../../../docs/rails-restart.svg"

// act is something that comes to one side in a panel of the picture.
type act struct{ side, input string }

// panels are restarts. What comes of each act is in Dance.
var panels = []struct {
	title string
	at    map[string]string // the states in the beginning
	acts  []act
}{
	{"A fragment of the sender's fails", map[string]string{Sender: "streaming", Receiver: "taking"}, []act{
		{Sender, "own fragment fails"}, {Sender, "last own fragment completes"}, {Receiver, "next RNDVRESTARTNOTIFY"}, {Sender, "RNDVRESTARTNOTIFY completes"},
		{Receiver, "last own fragment completes"}, {Sender, "RNDVRESTARTACK"}, {Receiver, "RNDV"},
	}},
	{"A fragment of the receiver's fails", map[string]string{Sender: "streaming", Receiver: "taking"}, []act{
		{Receiver, "last own fragment fails"}, {Sender, "RECVERRNOTIFY"}, {Sender, "last own fragment completes"}, {Receiver, "next RNDVRESTARTNOTIFY"},
		{Receiver, "last own fragment completes"}, {Sender, "RNDVRESTARTACK"}, {Sender, "RNDVRESTARTNOTIFY completes"}, {Receiver, "RNDV"},
	}},
	{"It fails, and yet all has arrived", map[string]string{Sender: "streaming", Receiver: "gone"}, []act{
		{Sender, "own fragment fails"}, {Sender, "last own fragment completes"}, {Sender, "RNDVRESTARTNOTIFY fails"}, {Receiver, "next RNDVRESTARTNOTIFY"},
		{Sender, "RNDVRESTARTNOTIFY completes"}, {Sender, "RNDVRESTARTNACK"},
	}},
}

// TestPicture draws restarts by the table, and compares them with the picture in docs.
func TestPicture(t *testing.T) {
	rows := map[[3]string]Transition{}
	for _, d := range Dance {
		rows[[3]string{d.Side, d.State, d.Input}] = d
	}
	const width, left, right, step = 470, 135, 335, 40
	var b bytes.Buffer
	most := 0
	for i, p := range panels {
		x := i * width
		text := func(at, y int, style, anchor, s string) {
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" %s text-anchor=\"%s\">%s</text>\n", x+at, y, style, anchor, s)
		}
		line := map[string]int{Sender: left, Receiver: right}
		state := func(side, s string, y int) {
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"76\" height=\"18\" rx=\"9\" fill=\"#e8eef7\" stroke=\"#5b7aa8\"/>\n", x+line[side]-38, y-13)
			text(line[side], y, "", "middle", s)
		}
		text(width/2, 20, "font-weight=\"bold\"", "middle", p.title)
		y := 66
		for _, side := range []string{Sender, Receiver} {
			text(line[side], 42, "", "middle", side)
			fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"66\" x2=\"%d\" y2=\"%d\" stroke=\"#999999\"/>\n", x+line[side], x+line[side], y+step*len(p.acts)+step)
			state(side, p.at[side], y)
		}
		sent := map[string]bool{}
		for _, a := range p.acts {
			y += step
			d, ok := rows[[3]string{a.side, p.at[a.side], a.input}]
			if !ok {
				t.Fatalf("%s: the %s takes %q in state %s: not in the table", p.title, a.side, a.input, p.at[a.side])
			}
			if message := strings.TrimPrefix(a.input, "next "); strings.ToUpper(message) == message && !sent[message] {
				t.Fatalf("%s: the %s takes %s, which was not sent", p.title, a.side, message)
			}
			p.at[a.side] = d.Next
			state(a.side, d.Next, y)
			cause := strings.NewReplacer("last own", "last", "own fragment", "fragment", "RNDVRESTART", "").Replace(a.input)
			anchor, at := "end", left-42
			if a.side == Receiver {
				anchor, at = "start", right+42
			}
			if strings.ToUpper(a.input) != a.input && !strings.HasPrefix(a.input, "next ") {
				words := strings.Fields(cause)
				text(at, y-6, "fill=\"#a03030\" font-size=\"10\"", anchor, strings.Join(words[:len(words)-1], " "))
				text(at, y+6, "fill=\"#a03030\" font-size=\"10\"", anchor, words[len(words)-1])
			}
			if d.Output == "" {
				continue
			}
			name := map[string]string{"RGET": "RNDV"}[d.Output]
			if name == "" {
				name = d.Output
			}
			sent[name] = true
			from, to := left+40, right-3
			if a.side == Receiver {
				from, to = right-40, left+3
			}
			fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#222222\" marker-end=\"url(#arrow)\"/>\n", x+from, y-4, x+to, y+step/2)
			text((left+right)/2, y-5, "font-size=\"10\"", "middle", name)
		}
		most = max(most, y)
	}
	const title = "The restart of a message after the loss of a rail, generated from the table of transitions of package internal/core/rail"
	svg := fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"Menlo, Consolas, monospace\" font-size=\"11\">\n<title>%s</title>\n"+
		"<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#222222\"/></marker></defs>\n"+
		"<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n%s</svg>\n", width*len(panels), most+50, title, width*len(panels), most+50, b.Bytes())
	if flag.Lookup("update").Value.String() == "true" { // of package transcript
		if err := os.WriteFile(picture, []byte(svg), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(picture); err != nil || string(is) != svg {
		t.Errorf("%s is outdated (%v): go test ./internal/core/rail -run TestPicture -update", picture, err)
	}
}
