package rail

import "testing"

// TestMayWait: with one path nothing waits for the completion of a buffered message, of an
// announcement, or of an answer. With two, all completions measure paths.
func TestMayWait(t *testing.T) {
	for _, c := range []struct {
		name     string
		paths    int
		send     SendRequest
		envelope kind
		want     bool
	}{
		{"buffered", 1, SendRequest{Data: make([]byte, 8), Buffered: true}, kindMatch, true},
		{"buffered, two paths", 2, SendRequest{Data: make([]byte, 8), Buffered: true}, kindMatch, false},
		{"not buffered", 1, SendRequest{Data: make([]byte, 8)}, kindMatch, false},
		{"announced", 1, SendRequest{Data: make([]byte, 1<<20), Buffered: true}, kindRndv, true},
		{"announced, two paths", 2, SendRequest{Data: make([]byte, 1<<20)}, kindRndv, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ends [2]*Peer
			var out Output
			for i := range ends {
				p, err := New(Config{})
				if err != nil {
					t.Fatal(err)
				}
				for path := range c.paths {
					for class := range classes {
						p.PathUp(uint8(path), class, 0, 0, 0, &out)
					}
				}
				ends[i] = p
			}
			out.Reset()
			send, recv := c.send, RecvRequest{Data: make([]byte, len(c.send.Data))}
			ends[0].Send(&send, 0, &out)
			if len(out.Frames) != 1 || kind(out.Frames[0].Head[0]) != c.envelope || out.Frames[0].MayWait != c.want {
				t.Fatalf("it sends %+v, want a %v with MayWait %v", out.Frames, c.envelope, c.want)
			}
			if c.envelope != kindRndv {
				return
			}
			envelope := append([]byte(nil), out.Frames[0].Head...)
			out.Reset()
			ends[1].Recv(&recv, 0, &out)
			if err := ends[1].Arrived(0, Message, envelope, 0, &out); err != nil {
				t.Fatal(err)
			}
			if len(out.Frames) != 1 || kind(out.Frames[0].Head[0]) != kindAck || out.Frames[0].MayWait != c.want {
				t.Fatalf("the answer is %+v, want ACK with MayWait %v", out.Frames, c.want)
			}
			answer := append([]byte(nil), out.Frames[0].Head...)
			out.Reset()
			if err := ends[0].Arrived(0, Message, answer, 0, &out); err != nil {
				t.Fatal(err)
			}
			for _, f := range out.Frames {
				if f.MayWait {
					t.Errorf("data may wait: %+v", f.Head)
				}
			}
		})
	}
}
