package transcript

import "testing"

// Transitions checks a table of transitions: each row is a state, an input, the state
// after it and what is put out, as step returns them. All states have as many rows.
func Transitions(t *testing.T, rows [][4]string, states map[string][]string, step func(from, input string) (to, out string)) {
	t.Helper()
	seen := map[string]int{}
	for _, row := range rows {
		seen[row[0]]++
		t.Run(row[0]+"/"+row[1], func(t *testing.T) {
			to, out := step(row[0], row[1])
			if to != row[2] || out != row[3] {
				t.Errorf("got  {%q, %q}\nwant {%q, %q}", to, out, row[2], row[3])
			}
		})
	}
	first := rows[0][0]
	for state := range states {
		if seen[state] != seen[first] {
			t.Errorf("%d inputs in state %q, %d in state %s", seen[state], state, seen[first], first)
		}
	}
}
