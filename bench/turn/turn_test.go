package turn

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Request{
			Variant: rapid.StringMatching(`[a-z-]{1,12}`).Draw(t, "variant"), Bytes: rapid.IntRange(0, 1<<34).Draw(t, "bytes"),
			Warmup: rapid.IntRange(0, 100).Draw(t, "warmup"), Iterations: rapid.IntRange(0, maxOperations).Draw(t, "iterations"),
		}
		if back, err := ParseRequest(r.String()); err != nil || back != r {
			t.Fatalf("%v, %v", back, err)
		}
		duration := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Min(0).Draw(t, "ns")) })
		reply := Reply{
			Right: rapid.Bool().Draw(t, "right"), Transport: rapid.StringMatching(`[a-z-]{1,9}`).Draw(t, "transport"),
			User: duration.Draw(t, "user"), System: duration.Draw(t, "system"), Times: rapid.SliceOf(duration).Draw(t, "times"),
		}
		if back, err := ParseReply(reply.String()); err != nil || !reflect.DeepEqual(back, reply) {
			t.Fatalf("%v, %v", back, err)
		}
	})
	for _, line := range []string{"", "run", "run x 1 2", "run x 1 2 3 4", "walk x 1 2 3", "run x -1 2 3", "run x 8 1 2000000", "run x 8 a 2"} {
		if _, err := ParseRequest(line); !errors.Is(err, ErrWords) {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"", "done", "done right - 1", "done well - 1 2 3", "done right - 1 2 x", "done right - 1 -2"} {
		if _, err := ParseReply(line); !errors.Is(err, ErrWords) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := ParseReply("failed no memory left"); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "no memory left") {
		t.Errorf("%v", err)
	}
}

func FuzzParseReply(f *testing.F) {
	f.Add("done right - 1 2 3 4")
	f.Add("failed x")
	f.Fuzz(func(t *testing.T, line string) {
		if r, err := ParseReply(line); err == nil {
			if back, err := ParseReply(r.String()); err != nil || !reflect.DeepEqual(back, r) {
				t.Errorf("%q: %v, %v", line, back, err)
			}
		}
	})
}

func TestCombine(t *testing.T) {
	o, err := Combine([]Reply{
		{true, "offload", 1, 10, []time.Duration{5, 1, 3}},
		{true, "offload", 2, 20, []time.Duration{4, 2, 9}},
	})
	if want := (Outcome{true, "offload", 3, 30, []time.Duration{5, 2, 9}}); err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = Combine([]Reply{{Right: true, Transport: "a"}, {Right: false, Transport: "b"}}); err != nil || o.Right || o.Transport != "mixed" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := Combine([]Reply{{Times: make([]time.Duration, 2)}, {}}); !errors.Is(err, ErrWords) {
		t.Errorf("%v", err)
	}
}

// laid returns a table for so many ranks, and where it stands.
func laid(t *testing.T, ranks int) (*Table, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	table, err := Lay(socket, ranks)
	if err != nil {
		t.Fatal(err)
	}
	return table, socket
}

func TestTurns(t *testing.T) {
	const ranks = 3
	table, socket := laid(t, ranks)
	var all sync.WaitGroup
	ended := make([]error, ranks)
	for rank := range ranks {
		all.Go(func() {
			ended[rank] = Join(socket, rank, func(r Request) (Reply, error) {
				if r.Variant == "bad" && rank == 1 {
					return Reply{}, errors.New("it is bad\nvery")
				}
				times := make([]time.Duration, r.Iterations)
				for i := range times {
					times[i] = time.Duration(rank*10 + i)
				}
				return Reply{true, "-", time.Duration(r.Bytes), time.Duration(r.Warmup), times}, nil
			})
		})
	}
	if err := table.Seat(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o, err := table.Play(t.Context(), Request{"good", 100, 7, 2})
		if want := (Outcome{true, "-", 300, 21, []time.Duration{20, 21}}); err != nil || !reflect.DeepEqual(o, want) {
			t.Errorf("%+v, %v", o, err)
		}
	}
	if _, err := table.Play(t.Context(), Request{"bad", 1, 1, 1}); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "rank 1: ") {
		t.Errorf("%v", err)
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if err := errors.Join(ended...); err != nil {
		t.Error(err)
	}
}

// TestImpatience has a rank that never comes, and one that never answers.
func TestImpatience(t *testing.T) {
	table, socket := laid(t, 1)
	defer table.Close()
	over := errors.New("it is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if err := table.Seat(ctx); !errors.Is(err, over) || !strings.Contains(err.Error(), "0 of 1 ranks") {
		t.Errorf("%v", err)
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "rank 0\n"); err != nil {
		t.Fatal(err)
	}
	if err := table.Seat(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	go func() {
		b := make([]byte, 100)
		_, _ = conn.Read(b) // the request, which nobody answers
		cancel(over)
	}()
	if _, err := table.Play(ctx, Request{"x", 1, 1, 1}); !errors.Is(err, over) {
		t.Errorf("%v", err)
	}
}

func TestStrangers(t *testing.T) {
	for _, greeting := range []string{"rank 2\n", "rank -1\n", "rank one\n", "hello\n", ""} {
		table, socket := laid(t, 2)
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.WriteString(conn, greeting); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := table.Seat(t.Context()); !errors.Is(err, ErrWords) {
			t.Errorf("%q: %v", greeting, err)
		}
		if err := errors.Join(conn.Close(), table.Close()); err != nil {
			t.Error(err)
		}
	}
}
