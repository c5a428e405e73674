package offload

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/reduce"
)

// TestFlagSurvives: with every function that is offloaded, on every type, the
// flag says whether anyone has failed, by the kernels that switches reduce with.
func TestFlagSurvives(t *testing.T) {
	checkFlags[int32](t)
	checkFlags[int64](t)
	checkFlags[uint32](t)
	checkFlags[uint64](t)
	checkFlags[float32](t)
	checkFlags[float64](t)
	checkFlags[reduce.F16](t)
	checkFlags[reduce.BF16](t)
}

func checkFlags[T reduce.Element](t *testing.T) {
	for f := reduce.Sum; f.Valid(); f++ {
		flags, err := flagOf[T](f)
		isXor := f == reduce.BXor || f == reduce.LXor
		if want := reduce.Defined(f, reduce.TypeOf[T]()) && !isXor && !f.Located(); want != (err == nil) || err != nil && !errors.Is(err, ErrFunction) {
			t.Errorf("%v of %v: %v", f, reduce.TypeOf[T](), err)
		}
		if err != nil {
			continue
		}
		t.Run(fmt.Sprintf("%v/%v", f, reduce.TypeOf[T]()), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkFlag(t, f, flags) })
		})
	}
}

func checkFlag[T reduce.Element](t *rapid.T, f reduce.Function, flags flag[T]) {
	kernel, err := reduce.KernelOf(f, reduce.TypeOf[T]())
	if err != nil {
		t.Fatal(err)
	}
	failed := rapid.SliceOfN(rapid.Bool(), 1, 70).Draw(t, "failed")
	want := true
	var sum []byte
	for _, fails := range failed { // one after the other, as up a tree
		x := flags.fine
		if fails {
			x, want = flags.failed, false
		}
		b := make([]byte, reduce.TypeOf[T]().Size())
		reduce.Put(b, []T{x})
		if sum == nil {
			sum = bytes.Clone(b)
			continue
		}
		kernel(sum, [][]byte{sum, b})
	}
	got := make([]T, 1)
	if reduce.Get(got, sum); (got[0] == flags.fine) != want {
		t.Errorf("%v come to %v, want all fine: %v", failed, got[0], want)
	}
}

// FuzzUnpack: what comes is read as it was packed, and nothing else is believed.
func FuzzUnpack(f *testing.F) {
	f.Add(uint64(7), []byte("payload"), uint32(7))
	f.Add(uint64(1)<<40, []byte{}, uint32(shutdownLength))
	f.Add(uint64(1), []byte("short"), uint32(4000))
	f.Fuzz(func(t *testing.T, number uint64, payload []byte, length uint32) {
		if len(payload) > 64 {
			payload = payload[:64]
		}
		words := make([]uint32, headWords+16)
		pack(words, number, payload, length)
		gotNumber, got, shutdown, err := unpack(words, nil)
		switch {
		case length == shutdownLength:
			if !shutdown {
				t.Error("a shutdown is none")
			}
		case length > 64:
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%d bytes: %v", length, err)
			}
		case err != nil || shutdown || gotNumber != number || len(got) != int(length) || !bytes.HasPrefix(append(bytes.Clone(payload), make([]byte, 64)...), got):
			t.Errorf("%d, %q is read as %d, %q, %v, %v", number, payload, gotNumber, got, shutdown, err)
		}
	})
}

// TestRunOnce: however many ask for a request at once, one runs it; and one from
// before those that are remembered does not run again.
func TestRunOnce(t *testing.T) {
	m := newMemory(4)
	var runs atomic.Int32
	for number := uint64(1); number <= 20; number++ {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				o, mine, err := m.enter(number)
				if err != nil {
					t.Error(err)
					return
				}
				if mine {
					runs.Add(1)
					close(o.done)
				}
				<-o.done
			})
		}
		all.Wait()
	}
	if runs.Load() != 20 {
		t.Errorf("%d runs of 20 requests", runs.Load())
	}
	for number := uint64(1); number <= 16; number++ {
		if _, _, err := m.enter(number); !errors.Is(err, ErrUnknown) {
			t.Errorf("request %d: %v, want that it is forgotten", number, err)
		}
	}
	for number := uint64(17); number <= 20; number++ {
		if _, mine, err := m.enter(number); err != nil || mine {
			t.Errorf("request %d: %v, or it runs again", number, err)
		}
	}
}
