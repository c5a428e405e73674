package version

import (
	"runtime/debug"
	"testing"
)

func TestVersionOfABuild(t *testing.T) {
	revision := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef"}}
	for _, c := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", revision, "v1.2.3"},
		{"(devel)", revision, "(devel) 0123456789ab"},
		{"", nil, "(devel)"},
	} {
		if got := of(&debug.BuildInfo{Main: debug.Module{Version: c.version}, Settings: c.settings}); got != c.want {
			t.Errorf("%q, %v: %q, want %q", c.version, c.settings, got, c.want)
		}
	}
}

func TestWhatTheLinkerSays(t *testing.T) {
	defer func(before string) { reported = before }(reported)
	if String() == "v9.9.9" {
		t.Fatal("it is that version anyway")
	}
	if reported = "v9.9.9"; String() != reported {
		t.Errorf("%q, want %q", String(), reported)
	}
}
