package collective

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// points tells, for each point of the requirements of server collectives, the
// tests that hold it ("package: test", this package where none is named), and
// what of it is not there yet and why.
var points = [...]struct{ tests, pending string }{
	1:  {"TestPoint01Services", ""},
	2:  {"TestPoint02SameTagUnderTwoServices", ""},
	3:  {"TestPoint03Creation", "name and private value on the handle: hostlib/scoll's"},
	4:  {"TestPoint04Immediate", ""},
	5:  {"TestPoint05Delayed", ""},
	6:  {"TestPoint06TooLargeToDelay", ""},
	7:  {"TestPoint07OutOfBand", ""},
	8:  {"TestPoint08Broadcast", "the private value: hostlib/scoll's"},
	9:  {"TestPoint09Queries", ""},
	10: {"TestPoint10ReplyBuffers", ""},
	11: {"TestPoint11SendReplyAbort", ""},
	12: {"TestPoint12Callbacks", ""},
	13: {"TestPoint13WhatIsShown", "bulk vectors: the core knows lengths, hostlib/scoll has the memory"},
	14: {"TestPoint14OneWayOnEveryNode", ""},
	15: {"TestPoint15PreRequest", ""},
	16: {"TestPoint16IncomingRequest", ""},
	17: {"TestPoint17CopiesOfTheRequest", ""},
	18: {"TestPoint18OncePerChild", ""},
	19: {"TestPoint19Reply", ""},
	20: {"TestPoint20Completion", ""},
	21: {"TestPoint21ManyGroupsAndTrees", ""},
	22: {"TestPoint22OnePassUp", ""},
	23: {"TestPoint23AllAreAlive", ""},
	24: {"TestPoint24DeliveryFails", ""},
	25: {"TestPoint25ProcessingTime", ""},
	26: {"TestPoint26Cascade", ""},
	27: {"TestPoint27Expiry", ""},
	28: {"TestPoint28BeforePreRequest", ""},
	29: {"TestPoint29FromPreRequest", ""},
	30: {"TestPoint30LaterErrors", ""},
	31: {"TestPoint31BulkErrors", ""},
	32: {"TestPoint32Stopping", ""},
	33: {"TestPoint33Receive", ""},
	34: {"TestPoint34ReplyBuffersMatch", ""},
	35: {"TestPoint35LargeReplies", ""},
	36: {"TestPoint36Bulk", "the read itself: hostlib/scoll's, over hostlib/rail or TCP"},
	37: {"TestPoint37AggregationIsTheServices", "ready-made aggregators: hostlib/scoll's"},
	38: {"TestPoint38Identity", ""},
	39: {"TestPoint39DigestOfOutOfBand", ""},
	40: {"TestPoint40SubsetOfTheAlive", ""},
	41: {"TestPoint41Destruction", ""},
	42: {"TestPoint42QuickReboot", "stealth mode and the counter of deaths: hostlib/membership's"},
	43: {"TestPoint43Versions", ""},
	44: {"internal/sim/servers: TestPoint44And49GrowAsLogN", ""},
	45: {"TestPoint45PluggableTrees internal/sim/servers: BenchmarkLastLeaf", "the fabric's tree, the choice at initialisation and the priority of messages: hostlib/scoll's"},
	46: {"hostlib/tree: TestPoint46Binomial", ""},
	47: {"hostlib/tree: TestPoint47Rounds TestTranscripts", ""},
	48: {"hostlib/tree: TestPoint48KNomial", ""},
	49: {"internal/sim/servers: TestPoint44And49GrowAsLogN", ""},
	50: {"hostlib/tree: TestPoint50Complete TestPoint50RotatedRoots", ""},
	51: {"hostlib/tree: TestPoint51DeepestFirst", ""},
	52: {"TestPoint52OrderOfMembers", "an order made of the topology: hostlib/scoll's"},
}

// TestEveryPointHasItsTest: the table names tests that exist.
func TestEveryPointHasItsTest(t *testing.T) {
	if len(points) != 53 {
		t.Fatalf("%d points, want 52", len(points)-1)
	}
	known := map[string]map[string]bool{}
	for number, p := range points[1:] {
		dir, any := ".", false
		for _, word := range strings.Fields(p.tests) {
			if path, ok := strings.CutSuffix(word, ":"); ok {
				dir = filepath.Join("..", "..", "..", filepath.FromSlash(path))
				continue
			}
			if known[dir] == nil {
				known[dir] = functions(t, dir)
			}
			if !known[dir][word] {
				t.Errorf("point %d: no %s in %s", number+1, word, dir)
			}
			dir, any = ".", true
		}
		if !any {
			t.Errorf("point %d has no test", number+1)
		}
		if p.pending != "" {
			t.Log(fmt.Sprintf("point %d, pending: %s", number+1, p.pending))
		}
	}
}

// functions returns the names of all functions in a directory's tests.
func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
