package rudp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// TestCookies: a cookie is good for its address, ID and time alone.
func TestCookies(t *testing.T) {
	cookies, others := NewCookies([32]byte{1}), NewCookies([32]byte{2})
	connect := func(id ID) []byte { return short(Connect, id, connectSize) }
	now := core.Time(time.Hour)
	retry := cookies.Retry(nil, now, address, connect(7))
	if len(retry) > connectSize {
		t.Fatalf("a Retry of %d bytes for a Connect of %d", len(retry), connectSize)
	}
	with := func(id ID) []byte {
		b := connect(id)
		copy(b[cookieAt:], retry[cookieAt:])
		return b
	}
	for _, c := range []struct {
		name    string
		by      *Cookies
		at      core.Time
		from    netip.AddrPort
		connect []byte
		want    bool
	}{
		{"as given", cookies, now, address, with(7), true},
		{"later", cookies, now.Add(cookieLife), address, with(7), true},
		{"too late", cookies, now.Add(cookieLife + 1), address, with(7), false},
		{"before it was given", cookies, now - 1, address, with(7), false},
		{"another address", cookies, now, netip.MustParseAddrPort("192.0.2.2:7000"), with(7), false},
		{"another port", cookies, now, netip.MustParseAddrPort("192.0.2.1:7001"), with(7), false},
		{"another ID", cookies, now, address, with(8), false},
		{"another listener", others, now, address, with(7), false},
		{"none", cookies, now, address, connect(7), false},
	} {
		if got := c.by.Valid(c.at, c.from, c.connect); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { cookies.Valid(now, address, with(8)) }); n > 1 { // that of with
		t.Errorf("%v allocations", n)
	}
}
