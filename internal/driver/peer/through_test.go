package peer

import (
	"bytes"
	"testing"
)

// TestThrough: frames of class Message come whole and in order, whether the kernel takes them at
// once, in part, or not at all, and whatever they wait behind.
func TestThrough(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		reads, goesOn := make(chan struct{}), make(chan struct{})
		out, in, path := joined(t, Message, trust)
		in.mu.Lock()
		var got [][]byte
		in.onFrames = func(_ *Conn, frames []Frame) {
			if got == nil {
				close(reads)
				<-goesOn
			}
			in.mu.Lock()
			defer in.mu.Unlock()
			for _, f := range frames {
				got = append(got, bytes.Clone(f.Bytes))
			}
		}
		in.mu.Unlock()
		var want [][]byte
		add := func(size int, isFlushed bool) {
			number := uint64(len(want) + 1)
			want = append(want, payloadOf(uint32(number), size))
			body := bytes.Clone(want[len(want)-1])
			if err := path.Send(&Send{Service: Messages, Head: body[:min(size, 28)], Body: body[min(size, 28):], Number: number}); err != nil {
				t.Fatal(err)
			}
			clear(body) // it is not lent
			if isFlushed {
				path.Flush()
			}
		}
		add(8, true)
		<-reads
		for i := range 300 { // more than sockets hold
			add([]int{60_001, 5, throughFrom + 28, 64 << 10, throughFrom + 27, 33_333}[i%6], i%4 != 0)
		}
		path.Flush()
		close(goesOn)
		await(t, "acknowledgements", func() bool { _, ok := out.outcome(uint64(len(want))); return ok })
		in.mu.Lock()
		defer in.mu.Unlock()
		for i := range want {
			if i >= len(got) || !bytes.Equal(got[i], want[i]) {
				t.Fatalf("frame %d of %d is another", i, len(got))
			}
		}
	})
}
