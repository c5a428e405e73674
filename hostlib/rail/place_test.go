package rail

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
)

// TestStalledFragment: a path stalls in the middle of a fragment that is read to its place, and the
// receive ends meanwhile: since its sender has lost the path, and sends the message again on another
// one, or since it is cancelled, or its space closed. When the path goes on, nothing
// is written to the receive's memory, which is its caller's again.
func TestStalledFragment(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p *fakePath, receive *Request, s *TagSpace)
		want error
	}{
		"sent again":          {func(p *fakePath, _ *Request, _ *TagSpace) { p.Break(errCut) }, nil},
		"the receive ends":    {func(_ *fakePath, receive *Request, _ *TagSpace) { receive.Cancel() }, ErrCanceled},
		"the space is closed": {func(_ *fakePath, _ *Request, s *TagSpace) { s.Close() }, ErrCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			f, a, b := pair(t, 2, Config{})
			const size = 4 << 20
			data, into := pattern(1, size), make([]byte, size)
			stalled, goes := make(chan *fakePath, 1), make(chan struct{})
			var isOne atomic.Bool
			f.within = func(p *fakePath) {
				if p.pair == 1 && isOne.CompareAndSwap(false, true) {
					stalled <- p
					<-goes
				}
			}
			var spaces [2]*TagSpace
			for i, n := range []*Node{a.node, b.node} {
				s, err := n.TagSpace(5, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				spaces[i] = s
			}
			receive := spaces[1].StartRecv(b, 1, 0, into)
			send := spaces[0].StartSend(a, 1, data)
			p := <-stalled
			c.end(p, receive, spaces[1])
			status, err := receive.Wait(t.Context())
			if !errors.Is(err, c.want) || err == nil && (status.Size != size || !bytes.Equal(into, data)) {
				t.Errorf("%v, %v", status, err)
			}
			clear(into)
			close(goes)
			p.Break(errCut)
			p.mu.Lock()
			for !p.isOver {
				p.cond.Wait()
			}
			p.mu.Unlock()
			if !bytes.Equal(into, make([]byte, size)) {
				t.Error("the memory was written after the receive's end")
			}
			send.Cancel()
			_, _ = send.Wait(t.Context())
		})
	}
}
