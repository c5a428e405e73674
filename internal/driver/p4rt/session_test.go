package p4rt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const program = 0xabcd1234

// Cookies of two pushes of the program, and of another program's.
const (
	push1 = program<<32 | 1
	push2 = program<<32 | 2
	alien = 0x1111<<32 | 1
)

// errBroken is why sessions of these tests end.
var errBroken = fmt.Errorf("%w: broken", ErrUnavailable)

// trace reports what a state machine says after each signal of a script.
func trace(t *testing.T, script string) string {
	t.Helper()
	s := session{program: program}
	var reported []string
	for _, word := range strings.Fields(script) {
		var events []Event
		switch word {
		case "open":
			s.open()
		case "won":
			events, _ = s.elected(true, Election{})
		case "outbid":
			events, _ = s.elected(false, Election{Low: 20})
		case "outbid-more":
			events, _ = s.elected(false, Election{Low: 30})
		case "none":
			events = s.look(holding{})
		case "push1":
			events = s.look(holding{any: true, cookie: push1})
		case "push2":
			events = s.look(holding{any: true, cookie: push2})
		case "alien":
			events = s.look(holding{any: true, cookie: alien})
		case "unmarked":
			events = s.look(holding{any: true})
		case "pushes":
			s.push(push2)
		case "end":
			events = s.end(errBroken)
		case "end-otherwise":
			events = s.end(ErrWedged)
		default:
			t.Fatalf("no signal %q", word)
		}
		for _, e := range events {
			reported = append(reported, e.Kind.String()+errorsOf(e.Err))
		}
	}
	return strings.Join(reported, " ")
}

func errorsOf(err error) string {
	text := ""
	for _, is := range []struct {
		err  error
		name string
	}{
		{ErrNotPrimary, "-outbid"}, {ErrRestarted, "-restarted"}, {ErrNoPipeline, "-none"},
		{ErrOtherPipeline, "-other"}, {ErrWedged, "-wedged"},
	} {
		if errors.Is(err, is.err) {
			text += is.name
		}
	}
	return text
}

func TestSession(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"first start", "open won none", "primary-none"},
		{"nothing is reported before the look", "open won", ""},
		{"successor", "open won push1", "primary"},
		{"of another program", "open won alien", "primary-other"},
		{"of a program without a cookie", "open won unmarked", "primary-other"},
		{"pushing", "open won none pushes push2", "primary-none"},
		{"quiet looks", "open won push1 push1 push1", "primary"},
		{"repeated election", "open won push1 won won", "primary"},
		{"connection broken", "open won push1 end open won push1", "primary lost primary"},
		{"restarted", "open won push1 end open won none", "primary lost primary-restarted-none"},
		{"restarted twice", "open won push1 end open won none end open won none",
			"primary lost primary-restarted-none lost primary-none"},
		{"restarted and pushed by another", "open won push1 end open won push2", "primary lost primary-restarted"},
		{"replaced meanwhile", "open won push1 end open won alien", "primary lost primary-restarted-other"},
		{"replaced under its eyes", "open won push1 alien push2", "primary primary-restarted-other primary"},
		{"never connected", "end end end", "lost"},
		{"for another reason", "end end-otherwise end-otherwise end", "lost lost-wedged lost"},
		{"backup", "open outbid outbid", "backup-outbid"},
		{"backup of another", "open outbid outbid-more", "backup-outbid backup-outbid"},
		{"a backup's looks", "open outbid none alien", "backup-outbid"},
		{"mastership lost and regained", "open won push1 outbid won push1", "primary backup-outbid primary"},
		{"lost before the look", "open won outbid push1", "backup-outbid"},
		{"regained after another's push", "open won push1 outbid won push2", "primary backup-outbid primary-restarted"},
		{"a backup's push does not count", "open won push1 outbid pushes won push1", "primary backup-outbid primary"},
		{"a look after the end", "open won end none", "lost"},
		{"an election after the end", "open end won none", "lost"},
	} {
		if got := trace(t, test.script); got != test.want {
			t.Errorf("%s (%s):\n got %s\nwant %s", test.name, test.script, got, test.want)
		}
	}
}

// Every signal leads somewhere from every phase, an end to apart alone, and
// there is no way to primary but by a won election and a look.
func TestTransitions(t *testing.T) {
	for from := range phases {
		for sig := range signals {
			to := transitions[from][sig]
			switch {
			case sig == ended && to != apart:
				t.Errorf("phase %d ends in phase %d", from, to)
			case to == primary && from != primary && (from != checking || sig != looked):
				t.Errorf("phase %d becomes primary by signal %d", from, sig)
			case to == checking && from != checking && sig != won:
				t.Errorf("phase %d begins to check by signal %d", from, sig)
			case from == apart && to != apart && sig != opened:
				t.Errorf("signal %d begins a session", sig)
			}
		}
	}
}

// Whatever comes in whatever order: who may write is primary; a loss is reported
// exactly when a cookie that was reported, or pushed, is found to be another.
func TestSessionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := session{program: program}
		known := uint64(0) // last cookie that the owner knows of
		for range rapid.IntRange(0, 60).Draw(t, "signals") {
			var events []Event
			held := holding{}
			switch rapid.IntRange(0, 5).Draw(t, "signal") {
			case 0:
				if s.phase == apart { // a client has one stream at a time
					s.open()
				}
			case 1:
				events, _ = s.elected(true, Election{})
			case 2:
				events, _ = s.elected(false, Election{Low: 20})
			case 3:
				held = rapid.SampledFrom([]holding{{}, {any: true}, {true, push1}, {true, push2}, {true, alien}}).Draw(t, "held")
				events = s.look(held)
			case 4:
				if s.refusal() == nil {
					s.push(push1)
					known = push1
				}
			case 5:
				events = s.end(errBroken)
			}
			for _, e := range events {
				if e.Kind != Primary {
					continue
				}
				if restarted := errors.Is(e.Err, ErrRestarted); restarted != (known != 0 && known != held.cookie) {
					t.Fatalf("known %#x, held %#x, reported %v", known, held.cookie, e.Err)
				}
				known = e.Cookie
			}
			if (s.refusal() == nil) != (s.phase == primary) {
				t.Fatalf("phase %d: %v", s.phase, s.refusal())
			}
		}
	})
}

func TestElectionString(t *testing.T) {
	for e, want := range map[Election]string{{}: "0", {Low: 7}: "7", {High: 1, Low: 2}: "0x10000000000000002"} {
		if got := e.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
