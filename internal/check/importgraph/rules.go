package importgraph

// A ban forbids imports to some packages.
type ban struct {
	imports []place // standard library and other modules in full, this module's own by path in it
	within  []place // none: everywhere
	except  []place
	tests   bool // also in test files
	reason  string
}

var pure = []place{"internal/core/...", "pathsel", "p4/..."}

// bans are the forbidden imports; .golangci.yaml reports the same to editors.
var bans = []ban{
	{
		imports: []place{"sync/...", "context", "runtime/...", "unsafe"},
		within:  pure,
		reason:  "a pure package is stepped by one goroutine, shares nothing and never waits",
	},
	{
		imports: []place{"net", "net/http/...", "os/...", "syscall", "golang.org/x/sys/...", "golang.org/x/net/..."},
		within:  pure,
		reason:  "sockets, files and processes belong to drivers; addresses are net/netip",
	},
	{
		imports: []place{"math/rand/...", "crypto/rand"},
		within:  pure,
		reason:  "randomness comes in as an input, so that a seed repeats a run",
	},
	{
		imports: []place{"log/slog"},
		within: []place{
			"internal/core/...", "pathsel", "p4/...", "internal/sim/...",
			"topology", "reduce/...", "ranktree", "internal/wire",
		},
		reason: "slog only from the drivers' floor upward; what lower floors have to report is a result",
	},
	{
		imports: []place{"log"},
		tests:   true,
		reason:  "log/slog, from the drivers' floor upward",
	},
	{
		imports: []place{"math/rand"},
		tests:   true,
		reason:  "math/rand/v2 with a seed of its own",
	},
	{
		imports: []place{"io/ioutil", "github.com/pkg/errors", "github.com/golang/protobuf/..."},
		tests:   true,
		reason:  "superseded by the standard library and google.golang.org/protobuf",
	},
	{
		imports: []place{"bench/..."},
		except:  []place{"bench/..."},
		tests:   true,
		reason:  "what only measures is a module of its own, which the product does not need",
	},
	{
		imports: []place{"github.com/hashicorp/memberlist/...", "github.com/google/pprof/..."},
		except:  []place{"bench/..."},
		tests:   true,
		reason:  "only measuring needs it: go.mod of the product is without",
	},
	{
		imports: []place{"api/..."},
		except:  []place{"api/...", "internal/driver/rpc", "cmd/..."},
		reason:  "generated types never are internal state: internal/driver/rpc turns them into plain structs",
	},
	{
		imports: []place{"google.golang.org/grpc/..."},
		except:  []place{"api/...", "internal/driver/rpc", "internal/driver/gnmi/...", "internal/driver/p4rt/...", "bench/telemetrycost"},
		reason:  "only these packages know gRPC and its codes",
	},
	{
		imports: []place{"internal/core/switchreduce", "internal/core/session", "internal/core/epoch", "internal/core/hosttree", "internal/core/endpoint", "internal/core/manager", "internal/core/agent"},
		within:  []place{"internal/sim"},
		reason:  "the engine knows cores only by an interface; their adapters are in internal/sim/world",
	},
	{
		imports: []place{"testing/..."},
		except:  []place{"internal/check/transcript"},
		reason:  "helpers of tests live in test files; the transcripts serve several packages",
	},
}

// purity is what a pure package's own code must not do, beside its imports.
const purity = "a pure package has no clock and no goroutine: time comes in with Step"

// clocks are the functions of package time that read or wait for a clock.
var clocks = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
	"NewTimer": true, "NewTicker": true, "Tick": true,
}

// forbids reports whether b keeps the package at from from importing path.
func (b *ban) forbids(from, path string, test bool) bool {
	if test && !b.tests || !anyHolds(b.imports, path) || anyHolds(b.except, from) {
		return false
	}
	return b.within == nil || anyHolds(b.within, from)
}

func anyHolds(places []place, path string) bool {
	for _, p := range places {
		if p.holds(path) {
			return true
		}
	}
	return false
}
