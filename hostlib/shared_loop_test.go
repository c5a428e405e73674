package hostlib

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// TestManyProcesses: a host has as many processes as it may have, another one two.
func TestManyProcesses(t *testing.T) {
	hosts, members := joinProcesses(t, []int{maxProcesses, 2})
	comms := form(t, "test", hosts, members)
	sum(t, comms, 3000)
	each(len(comms), func(rank int) {
		if _, err := Barrier(within(t), comms[rank]); err != nil {
			t.Error(err)
		}
		all := make([]int32, len(comms))
		o, err := Allgather(within(t), comms[rank], []int32{int32(rank)}, all)
		for r, v := range all {
			if v != int32(r) {
				t.Errorf("rank %d: element %d is %d, by %v %v", rank, r, v, o, err)
			}
		}
	})
	leave(t, comms)
	ended(t, comms...)
	if n := sharedMappings(t); n != 0 {
		t.Errorf("memory is mapped %d times", n)
	}
}

// TestProcessesGiveUp: the end of a context ends the wait of one process, which runs operations as the
// leader or as another one; the operation goes on without it.
func TestProcessesGiveUp(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 1})
	comms := form(t, "test", hosts, members)
	for who := range comms {
		ctx, cancel := context.WithCancel(within(t))
		requests := make([]*Request, len(comms))
		vectors := make([][]int64, len(comms))
		var given sync.WaitGroup
		given.Go(func() {
			vectors[who] = []int64{1}
			_, err := Allreduce(ctx, comms[who], reduce.Sum, vectors[who], vectors[who])
			var u *UnfinishedError
			if !errors.As(err, &u) {
				t.Errorf("rank %d: %v", who, err)
				return
			}
			requests[who] = u.Request
		})
		for rank, c := range comms[:] {
			if rank != who && rank != (who+1)%len(comms) {
				vectors[rank] = []int64{1}
				requests[rank] = StartAllreduce(c, reduce.Sum, vectors[rank], vectors[rank])
			}
		}
		cancel()
		if given.Wait(); t.Failed() {
			return
		}
		last := (who + 1) % len(comms)
		vectors[last] = []int64{1}
		if _, err := Allreduce(within(t), comms[last], reduce.Sum, vectors[last], vectors[last]); err != nil {
			t.Error(err)
		}
		for rank, r := range requests {
			if r == nil {
				continue
			}
			if _, err := r.Wait(within(t)); err != nil || vectors[rank][0] != 3 {
				t.Errorf("rank %d: %v %v", rank, vectors[rank], err)
			}
		}
	}
	leave(t, comms)
}

// TestProcessesTakeTurns: several goroutines of each process begin operations in one order, and wait for
// them at once; some wait without a context's end, others begin what they wait for later.
func TestProcessesTakeTurns(t *testing.T) {
	hosts, members := joinProcesses(t, []int{3, 2})
	comms := form(t, "test", hosts, members)
	each(len(comms), func(rank int) {
		c := comms[rank]
		var waiting sync.WaitGroup
		for i := range 60 {
			v := make([]int64, 1+i%3*20_000)
			v[len(v)-1] = int64(i)
			check := func(err error) {
				if err != nil || v[len(v)-1] != int64(i*len(comms)) {
					t.Errorf("rank %d, operation %d: %d %v", rank, i, v[len(v)-1], err)
				}
			}
			if i%4 == 3 {
				_, err := Allreduce(context.Background(), c, reduce.Sum, v, v)
				check(err)
				continue
			}
			r := StartAllreduce(c, reduce.Sum, v, v)
			waiting.Go(func() {
				_, err := r.Wait(within(t))
				check(err)
			})
		}
		waiting.Wait()
	})
	leave(t, comms)
}
