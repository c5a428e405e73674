package rail

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

const ms = core.Time(time.Millisecond)

// TestJudge: of two paths, one falls silent at 0.
func TestJudge(t *testing.T) {
	h := DefaultHealth()
	var found core.Time
	for now := core.Time(0); now < 1000*ms; {
		silent := Sample{Waits: true}
		alive := Sample{Heard: now}
		verdicts, next := h.Judge(now, []Sample{silent, alive}, nil)
		if verdicts[1] != Alive {
			t.Fatalf("at %v the other is %v", now, verdicts[1])
		}
		if verdicts[0] == Dead {
			found = now
			break
		}
		if next <= now {
			t.Fatalf("at %v it wants to be asked at %v", now, next)
		}
		now = next
	}
	if found != core.Time(h.Within) {
		t.Errorf("found dead at %v", found)
	}
}

// TestJudgeSuspects first.
func TestJudgeSuspects(t *testing.T) {
	h := DefaultHealth()
	for now := core.Time(0); now < 200*ms; now += 50 * ms {
		want := Alive
		if now >= 100*ms {
			want = Suspect
		}
		if v, _ := h.Judge(now, []Sample{{Waits: true}, {Heard: now}}, nil); v[0] != want {
			t.Errorf("at %v it is %v", now, v[0])
		}
	}
}

// TestOwnPauseIsNoSilence: who did not ask for a second holds that against nobody.
func TestOwnPauseIsNoSilence(t *testing.T) {
	h := DefaultHealth()
	h.Judge(0, []Sample{{}, {}}, nil)
	v, _ := h.Judge(1000*ms, []Sample{{Waits: true}, {Heard: 999 * ms}}, nil)
	if v[0] != Alive {
		t.Errorf("it is %v", v[0])
	}
}

// TestJudgeInvariants: against the plain statement of the rule, where it is asked often
// enough: one path at least is not dead; a dead one has waited for all of the time, while
// another was heard.
func TestJudgeInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := DefaultHealth()
		for now := core.Time(0); now < 300*ms; now += 50 * ms { // it is asked often
			h.Judge(now, nil, nil)
		}
		samples := make([]Sample, rapid.IntRange(1, MaxRails).Draw(t, "paths"))
		for i := range samples {
			samples[i] = Sample{
				Waits: rapid.Bool().Draw(t, "waits"),
				Since: core.Time(rapid.Int64Range(0, 300).Draw(t, "since")) * ms,
				Heard: core.Time(rapid.Int64Range(0, 300).Draw(t, "heard")) * ms,
			}
		}
		verdicts, _ := h.Judge(300*ms, samples, nil)
		dead := 0
		for i, s := range samples {
			owes := func(s Sample) bool { return s.Waits && s.Since <= 100*ms }
			want := false
			for j, o := range samples {
				want = want || j != i && owes(s) && !owes(o) && o.Heard > 100*ms && o.Heard > s.Since
			}
			if got := verdicts[i] == Dead; got != want {
				t.Fatalf("path %d of %+v is dead: %v", i, samples, got)
			}
			if want {
				dead++
			}
		}
		if dead == len(samples) {
			t.Fatal("all are dead")
		}
	})
}

// TestJudgeAskedLate: a machine that is always late finds a dead path, too.
func TestJudgeAskedLate(t *testing.T) {
	h := DefaultHealth()
	for now := core.Time(0); now < 2000*ms; now += 150 * ms {
		if v, _ := h.Judge(now, []Sample{{Waits: true}, {Heard: now}}, nil); v[0] == Dead {
			return
		}
	}
	t.Error("it is never found dead")
}
