package revoke

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// The states in which rank 0 of 5 can be, whose neighbours are all others, and how it gets there.
var states = map[string][]string{
	"forming": nil,
	"kept":    {"notice"},
	"idle":    {"formed"},
	"revoked": {"formed", "revoke", "notice of 2"},
	"settled": {"formed", "revoke", "notice", "notice of 2", "notice of 3", "dead 4"},
}

// transitions report, for a state and an input, the state after it, and what is put out.
var transitions = [][4]string{
	{"forming", "formed", "idle", ""},
	{"kept", "formed", "revoked by 1; heard [1]", "to 4 2 3 1; delivered"},
	{"idle", "formed", "idle", ""},
	{"revoked", "formed", "revoked by 0; heard [2]", ""},
	{"settled", "formed", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "formed otherwise", "idle", ""},
	{"kept", "formed otherwise", "idle", ""},
	{"idle", "formed otherwise", "idle", ""},
	{"revoked", "formed otherwise", "revoked by 0; heard [2]", ""},
	{"settled", "formed otherwise", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "formed without life", "forming", ""},
	{"kept", "formed without life", "forming; of life 77 by 1 has sent [1]", ""},
	{"idle", "formed without life", "idle", ""},
	{"revoked", "formed without life", "revoked by 0; heard [2]", ""},
	{"settled", "formed without life", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "revoke", "forming", ""},
	{"kept", "revoke", "forming; of life 77 by 1 has sent [1]", ""},
	{"idle", "revoke", "revoked by 0", "to 4 2 3 1; delivered"},
	{"revoked", "revoke", "revoked by 0; heard [2]", ""},
	{"settled", "revoke", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "revoked by 3", "forming", ""},
	{"kept", "revoked by 3", "forming; of life 77 by 1 has sent [1]", ""},
	{"idle", "revoked by 3", "revoked by 3", "to 4 2 3 1; delivered"},
	{"revoked", "revoked by 3", "revoked by 0; heard [2]", ""},
	{"settled", "revoked by 3", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "revoked by 5", "forming", ""},
	{"kept", "revoked by 5", "forming; of life 77 by 1 has sent [1]", ""},
	{"idle", "revoked by 5", "idle", ""},
	{"revoked", "revoked by 5", "revoked by 0; heard [2]", ""},
	{"settled", "revoked by 5", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "notice", "forming; of life 77 by 1 has sent [1]", ""},
	{"kept", "notice", "forming; of life 77 by 1 has sent [1]", ""},
	{"idle", "notice", "revoked by 1; heard [1]", "to 4 2 3 1; delivered"},
	{"revoked", "notice", "revoked by 0; heard [1 2]", ""},
	{"settled", "notice", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "old notice", "forming; of life 76 by 1 has sent [1]", ""},
	{"kept", "old notice", "forming; of life 76 by 1 has sent [1]; of life 77 by 1 has sent [1]", ""},
	{"idle", "old notice", "idle", "refused"},
	{"revoked", "old notice", "revoked by 0; heard [2]", "refused"},
	{"settled", "old notice", "revoked by 0, settled; heard [1 2 3]; dead [4]", "refused"},

	{"forming", "no notice", "forming", "refused"},
	{"kept", "no notice", "forming; of life 77 by 1 has sent [1]", "refused"},
	{"idle", "no notice", "idle", "refused"},
	{"revoked", "no notice", "revoked by 0; heard [2]", "refused"},
	{"settled", "no notice", "revoked by 0, settled; heard [1 2 3]; dead [4]", "refused"},

	{"forming", "notice of others", "forming", "refused"},
	{"kept", "notice of others", "forming; of life 77 by 1 has sent [1]", "refused"},
	{"idle", "notice of others", "idle", "refused"},
	{"revoked", "notice of others", "revoked by 0; heard [2]", "refused"},
	{"settled", "notice of others", "revoked by 0, settled; heard [1 2 3]; dead [4]", "refused"},

	{"forming", "notice of 5", "forming", "refused"},
	{"kept", "notice of 5", "forming; of life 77 by 1 has sent [1]", "refused"},
	{"idle", "notice of 5", "idle", "refused"},
	{"revoked", "notice of 5", "revoked by 0; heard [2]", "refused"},
	{"settled", "notice of 5", "revoked by 0, settled; heard [1 2 3]; dead [4]", "refused"},

	{"forming", "notice of 0", "forming", "refused"},
	{"kept", "notice of 0", "forming; of life 77 by 1 has sent [1]", "refused"},
	{"idle", "notice of 0", "idle", "refused"},
	{"revoked", "notice of 0", "revoked by 0; heard [2]", "refused"},
	{"settled", "notice of 0", "revoked by 0, settled; heard [1 2 3]; dead [4]", "refused"},

	{"forming", "connected 1", "forming", ""},
	{"kept", "connected 1", "forming; of life 77 by 1 has sent [1]", ""},
	{"idle", "connected 1", "idle", ""},
	{"revoked", "connected 1", "revoked by 0; heard [2]", "to 1"},
	{"settled", "connected 1", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "connected 2", "forming", ""},
	{"kept", "connected 2", "forming; of life 77 by 1 has sent [1]", ""},
	{"idle", "connected 2", "idle", ""},
	{"revoked", "connected 2", "revoked by 0; heard [2]", ""},
	{"settled", "connected 2", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "connected 4", "forming", ""},
	{"kept", "connected 4", "forming; of life 77 by 1 has sent [1]", ""},
	{"idle", "connected 4", "idle", ""},
	{"revoked", "connected 4", "revoked by 0; heard [2]", "to 4"},
	{"settled", "connected 4", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},

	{"forming", "dead 4", "forming; dead [4]", ""},
	{"kept", "dead 4", "forming; of life 77 by 1 has sent [1]; dead [4]", ""},
	{"idle", "dead 4", "idle; dead [4]", ""},
	{"revoked", "dead 4", "revoked by 0; heard [2]; dead [4]", ""},
	{"settled", "dead 4", "revoked by 0, settled; heard [1 2 3]; dead [4]", ""},
}

// TestTransitions: the table has every input in every state.
func TestTransitions(t *testing.T) {
	transcript.Transitions(t, transitions, states, func(from, input string) (to, out string) {
		c, err := New(Config{Size: 5, Group: group})
		if err != nil {
			t.Fatal(err)
		}
		for _, before := range states[from] {
			inputOf(c, before)
		}
		out = inputOf(c, input)
		return c.String(), out
	})
}

// inputOf gives a member an input in words.
func inputOf(c *Core, words string) string {
	var rank uint32
	for _, word := range strings.Fields(words) {
		_, _ = fmt.Sscan(word, &rank)
	}
	in := Input{From: rank, Kind: Message}
	notice := noticeOf(life, 1)
	switch {
	case words == "formed":
		in.Kind, in.Life = Formed, life
	case words == "formed otherwise":
		in.Kind, in.Life = Formed, life+1
	case words == "formed without life":
		in.Kind = Formed
	case words == "revoke", strings.HasPrefix(words, "revoked by"):
		in.Kind = Revoke
	case words == "notice":
		in.From = 1
	case words == "old notice":
		in.From, notice = 1, noticeOf(life-1, 1)
	case words == "notice of others":
		in.From, notice.Of.Group = 1, [32]byte{9}
	case words == "no notice":
		in.From, notice.By = 1, 5
	case strings.HasPrefix(words, "connected"):
		in.Kind = Connected
	case strings.HasPrefix(words, "dead"):
		in.Kind = Dead
	}
	in.Bytes = notice.Append(nil)
	var out Output
	c.Step([]Input{in}, &out)
	var all []string
	if len(out.Sends) > 0 {
		to := "to"
		for _, s := range out.Sends {
			to += fmt.Sprintf(" %d", s.To)
		}
		all = append(all, to)
	}
	if out.Delivered {
		all = append(all, "delivered")
	}
	if out.Settled {
		all = append(all, "settled")
	}
	if out.Refused > 0 {
		all = append(all, "refused")
	}
	return strings.Join(all, "; ")
}
