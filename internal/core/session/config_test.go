package session

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

func TestConfigValidate(t *testing.T) {
	good := Config{Rank: 3, ChunkBytes: 1432, Window: 64}
	for name, row := range map[string]struct {
		change func(*Config)
		ok     bool
	}{
		"good":               {func(*Config) {}, true},
		"default timing":     {func(c *Config) { c.Timing = DefaultTiming() }, true},
		"rank":               {func(c *Config) { c.Rank = wire.MaxRank + 1 }, false},
		"members":            {func(c *Config) { c.Members = wire.MaxRank + 1 }, true},
		"too many members":   {func(c *Config) { c.Members = wire.MaxRank + 2 }, false},
		"negative members":   {func(c *Config) { c.Members = -1 }, false},
		"small chunk":        {func(c *Config) { c.ChunkBytes = 15 }, false},
		"large chunk":        {func(c *Config) { c.ChunkBytes = 1<<15 + 1 }, false},
		"no window":          {func(c *Config) { c.Window = 0 }, false},
		"odd window":         {func(c *Config) { c.Window = 3 }, false},
		"large window":       {func(c *Config) { c.Window = 2 * MaxWindow }, false},
		"negative queue":     {func(c *Config) { c.Timing = DefaultTiming(); c.Timing.Queue = -1 }, false},
		"half a timing":      {func(c *Config) { c.Timing.Max = time.Second }, false},
		"timing upside down": {func(c *Config) { c.Timing = DefaultTiming(); c.Timing.Max = c.Timing.Min - 1 }, false},
	} {
		c := good
		row.change(&c)
		if err := c.Validate(); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(c, 0); (err == nil) != row.ok {
			t.Errorf("New with %s: %v", name, err)
		}
	}
}

func TestLinkValidate(t *testing.T) {
	good := Link{Epoch: 2, Window: 4, Parent: parentAddr}
	for name, row := range map[string]struct {
		change func(*Link)
		ok     bool
	}{
		"good":            {func(*Link) {}, true},
		"window":          {func(l *Link) { l.Window = 16 }, false},
		"no window":       {func(l *Link) { l.Window = 0 }, false},
		"no parent":       {func(l *Link) { l.Parent = netip.AddrPort{} }, false},
		"cookie":          {func(l *Link) { l.Cookie = wire.CookieMask + 1 }, false},
		"negative probes": {func(l *Link) { l.Probes = -1 }, false},
		"negative idle":   {func(l *Link) { l.Idle = -1 }, false},
	} {
		l := good
		row.change(&l)
		err := l.Validate(Config{ChunkBytes: 64, Window: 8})
		if (err == nil) != row.ok || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOperationValidate(t *testing.T) {
	v := func(n int) []byte { return make([]byte, n) }
	for name, row := range map[string]struct {
		o  Operation
		ok bool
	}{
		"allreduce":         {Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 2, In: v(8), Out: v(8)}, true},
		"empty":             {Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32}, true},
		"located":           {Operation{Collective: wire.Allreduce, Function: reduce.MinLoc, Element: reduce.Float16, Elements: 2, In: v(32), Out: v(32)}, true},
		"reduce, not root":  {Operation{Collective: wire.Reduce, Function: reduce.Max, Element: reduce.Int64, Root: 2, Elements: 1, In: v(8)}, true},
		"reduce at root":    {Operation{Collective: wire.Reduce, Function: reduce.Max, Element: reduce.Int64, Root: 1, Elements: 1, In: v(8)}, false},
		"broadcast at root": {Operation{Collective: wire.Broadcast, Element: reduce.Int64, Root: 1, Elements: 1, In: v(8)}, true},
		"broadcast":         {Operation{Collective: wire.Broadcast, Element: reduce.Int64, Root: 2, Elements: 1, Out: v(8)}, true},
		"barrier":           {Operation{Collective: wire.Barrier}, true},
		"last":              {Operation{Collective: wire.Barrier, Last: true}, true},
		"barrier of two":    {Operation{Collective: wire.Barrier, Elements: 2}, false},
		"short input":       {Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 2, In: v(7), Out: v(8)}, false},
		"short output":      {Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 2, In: v(8), Out: v(4)}, false},
		"block":             {Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Block32, Elements: 2, In: v(8), Out: v(8)}, true},
		"greatest block":    {Operation{Collective: wire.Allreduce, Function: reduce.Max, Element: reduce.Block32, Elements: 2, In: v(8), Out: v(8)}, false},
		"block broadcast":   {Operation{Collective: wire.Broadcast, Element: reduce.Block32, Root: 1, Elements: 1, In: v(4)}, false},
		"undefined":         {Operation{Collective: wire.Allreduce, Function: reduce.BAnd, Element: reduce.Float32}, false},
		"allreduce to root": {Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Root: 1}, false},
		"root":              {Operation{Collective: wire.Reduce, Function: reduce.Sum, Element: reduce.Int32, Root: wire.MaxRank + 1}, false},
		"negative":          {Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: -1}, false},
		"last allreduce":    {Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Last: true}, false},
		"no collective":     {Operation{}, false},
	} {
		err := row.o.Validate(Config{Rank: 1, Members: 4})
		if (err == nil) != row.ok || err != nil && !errors.Is(err, ErrOperation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLossSaysWhatShowsIt(t *testing.T) {
	for want, l := range map[string]Loss{
		"the switch at 10.0.0.1:5 does not answer (17 probes in 800ms, no answer before)": {
			Parent: parentAddr, Probes: 17, Over: 800 * time.Millisecond,
		},
		"the switch at 10.0.0.1:5 has no path to the root: its parent, or one above, does not answer (16 probes in 1.2s, the last answer 2s ago)": {
			Parent: parentAddr, Said: true, Probes: 16, Over: 1200 * time.Millisecond, Quiet: 2 * time.Second,
		},
	} {
		want = strings.Replace(want, "10.0.0.1:5", parentAddr.String(), 1)
		if got := l.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
