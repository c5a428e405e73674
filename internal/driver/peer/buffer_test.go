package peer

import (
	"bytes"
	"testing"
)

// TestBuffersAreUsedAgain: to lay frames of 64 KiB one behind the other, and to give them
// back, takes no new memory.
func TestBuffersAreUsedAgain(t *testing.T) {
	for _, frames := range []int{1, 4, 16, 64} {
		body := make([]byte, 64<<10)
		for _, allowed := range []float64{1e9, 0} { // first they are made
			var q queue
			n := testing.AllocsPerRun(10, func() {
				for range frames {
					q.put(Data, &Send{Service: testService, Body: body})
				}
				q.out.release()
			})
			if n > allowed {
				t.Errorf("%d frames: %v allocations", frames, n)
			}
		}
	}
}

// TestBufferGrows: what is in it stays, and what is not to be used again is not.
func TestBufferGrows(t *testing.T) {
	var b buffer
	var want []byte
	for i := 0; len(want) < 10<<20; i++ {
		part := bytes.Repeat([]byte{byte(i)}, 1+i*977)
		b.append(part)
		want = append(want, part...)
		if !bytes.Equal(b.b, want) {
			t.Fatalf("after %d bytes", len(want))
		}
	}
	b.release()
	b.append([]byte("in a write"))
	was := b.b
	b.keep()
	b.append(make([]byte, 4<<10))
	var other buffer
	other.append([]byte("others"))
	if string(was) != "in a write" {
		t.Errorf("%q", was)
	}
	b.release()
	other.release()
}

// TestQueueForgetsWhatIsSent: a queue that is never empty does not grow with all that it
// ever held, and its marks stay where they were.
func TestQueueForgetsWhatIsSent(t *testing.T) {
	var q queue
	body := make([]byte, 1000)
	for i := range uint64(10_000) {
		q.put(Data, &Send{Service: testService, Body: body, Number: i + 1})
		if q.sent = len(q.out.b) - padded(len(body)); len(q.mark) > 1 {
			q.mark = q.mark[1:]
		}
	}
	if cap(q.out.b) > 4<<10 {
		t.Errorf("%d bytes for one frame that waits", cap(q.out.b))
	}
	if m := q.mark[0]; m.number != 10_000 || m.end != len(q.out.b) {
		t.Errorf("%+v of %d bytes", m, len(q.out.b))
	}
	q.out.release()
}
