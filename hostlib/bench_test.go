package hostlib

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/reduce"
)

// trusted returns the files of hosts' certificates by one authority, by name.
func trusted(t testing.TB, names ...string) map[string]*TLS {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trust")
	ids := make([]pki.Identity, len(names))
	for i, n := range names {
		ids[i] = pki.Identity{Role: pki.Host, Name: n}
	}
	if _, err := pki.Init(dir, ids...); err != nil {
		t.Fatal(err)
	}
	all := map[string]*TLS{}
	for _, id := range ids {
		all[id.Name] = &TLS{
			Cert: filepath.Join(dir, pki.CertFile(id)), Key: filepath.Join(dir, pki.KeyFile(id)), CA: filepath.Join(dir, pki.AuthorityFile),
		}
	}
	return all
}

// company is hosts for benchmarks, by whether they have certificates.
func company(b *testing.B, n int, isSecure bool) func() ([]*Host, []Member) {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("h", i)
	}
	var files map[string]*TLS
	if isSecure {
		files = trusted(b, names...)
	}
	return func() ([]*Host, []Member) {
		hosts, members := make([]*Host, n), make([]Member, n)
		for i, name := range names {
			h, err := Join(b.Context(), Config{Name: name, TLS: files[name]})
			if err != nil {
				b.Fatal(err)
			}
			hosts[i], members[i] = h, h.Member()
		}
		return hosts, members
	}
}

func dismiss(b *testing.B, hosts []*Host) {
	each(len(hosts), func(i int) {
		if err := hosts[i].Close(b.Context()); err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkHostTree is an allreduce over the tree of hosts.
func BenchmarkHostTree(b *testing.B) {
	for _, n := range []int{2, 8} {
		for _, isSecure := range []bool{false, true} {
			for _, size := range []int{8, 64 << 10, 16 << 20} {
				b.Run(fmt.Sprintf("members=%d/tls=%v/bytes=%d", n, isSecure, size), func(b *testing.B) {
					hosts, members := company(b, n, isSecure)()
					comms := form(b, "job", hosts, members)
					vectors := make([][]float32, n)
					for i := range vectors {
						vectors[i] = make([]float32, size/4)
					}
					run := func(times int) {
						each(n, func(i int) {
							for range times {
								if _, err := Allreduce(b.Context(), comms[i], reduce.Sum, vectors[i], vectors[i]); err != nil {
									b.Error(err)
								}
							}
						})
					}
					run(3)
					b.SetBytes(int64(size))
					b.ResetTimer()
					run(b.N)
					b.StopTimer()
					leave(b, comms)
					dismiss(b, hosts)
				})
			}
		}
	}
}

// BenchmarkForm is the forming of a group of 64 members in one process: of hosts that meet
// for the first time, and of those that have formed another one before; and the first
// allreduce after the former.
func BenchmarkForm(b *testing.B) {
	const n = 64
	for _, isSecure := range []bool{false, true} {
		for _, kind := range []string{"first", "again", "first+sum"} {
			b.Run(fmt.Sprintf("tls=%v/%s", isSecure, kind), func(b *testing.B) {
				joins := company(b, n, isSecure)
				for i := 0; b.Loop(); i++ {
					b.StopTimer()
					hosts, members := joins()
					if kind == "again" {
						comms := form(b, "before", hosts, members)
						sum(b, comms, 1)
						leave(b, comms)
					}
					b.StartTimer()
					comms := form(b, "job", hosts, members)
					if kind == "first+sum" {
						sum(b, comms, 1)
					}
					b.StopTimer()
					leave(b, comms)
					dismiss(b, hosts)
					b.StartTimer()
				}
			})
		}
	}
}
