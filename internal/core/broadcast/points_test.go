package broadcast

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// points reports, for each point of the requirements of server collectives, the
// tests that hold it: of this package, and behind "package:" of another, up to
// the next.
var points = [...]string{
	1:  "TestPoint01Services; hostlib/scoll: TestPoint01Services",
	2:  "TestPoint02SameTagUnderTwoServices; hostlib/scoll: TestPoint02SameTagUnderTwoServices",
	3:  "TestPoint03Creation; hostlib/scoll: TestPoint03HandleCarriesNameAndPrivateValue",
	4:  "TestPoint04Immediate; hostlib/scoll: TestPoint04Immediate",
	5:  "TestPoint05Delayed; hostlib/scoll: TestPoint05Delayed TestForgedReplies",
	6:  "TestPoint06TooLargeToDelay; hostlib/scoll: TestPoint06TooLargeToDelay",
	7:  "TestPoint07OutOfBand; hostlib/scoll: TestPoint07OutOfBand",
	8:  "TestPoint08Broadcast; hostlib/scoll: TestPoint08Broadcast",
	9:  "TestPoint09Queries; hostlib/scoll: TestPoint09Queries",
	10: "TestPoint10ReplyBuffers; hostlib/scoll: TestPoint10ReplyBuffers TestBuffers",
	11: "TestPoint11SendReplyAbort; hostlib/scoll: TestPoint11Abort TestRepliesTwiceOrNever",
	12: "TestPoint12Callbacks; hostlib/scoll: TestPoint12Callbacks",
	13: "TestPoint13WhatIsShown; hostlib/scoll: TestPoint13WhatIsShown",
	14: "TestPoint14OneWayOnEveryNode; hostlib/scoll: TestPoint14OneWayOnEveryNode TestForgedRequests",
	15: "TestPoint15PreRequest; hostlib/scoll: TestErrorsOfCallbacks",
	16: "TestPoint16IncomingRequest; hostlib/scoll: TestErrorsOfCallbacks",
	17: "TestPoint17CopiesOfTheRequest",
	18: "TestPoint18OncePerChild; hostlib/scoll: TestPoint14OneWayOnEveryNode",
	19: "TestPoint19Reply; hostlib/scoll: TestPoint19Reply",
	20: "TestPoint20Completion; hostlib/scoll: TestPoint20Completion",
	21: "TestPoint21ManyGroupsAndTrees; hostlib/scoll: TestPoint21ManyGroupsAndTrees",
	22: "TestPoint22OnePassUp",
	23: "TestPoint23AllAreAlive; hostlib/scoll: TestPoint23AllAreAlive",
	24: "TestPoint24DeliveryFails; hostlib/scoll: TestPoint24DeliveryFails TestRootDies",
	25: "TestPoint25ProcessingTime",
	26: "TestPoint26Cascade",
	27: "TestPoint27Expiry; hostlib/scoll: TestPoint27Expiry",
	28: "TestPoint28BeforePreRequest; hostlib/scoll: TestForgedRequests",
	29: "TestPoint29FromPreRequest; hostlib/scoll: TestErrorsOfCallbacks",
	30: "TestPoint30LaterErrors; hostlib/scoll: TestErrorsOfCallbacks TestErrorsOnTheRoot",
	31: "TestPoint31BulkErrors; hostlib/scoll: TestPoint31BulkErrors",
	32: "TestPoint32Stopping; hostlib/scoll: TestPoint32Stopping TestCloseWithoutEnd TestCloseWhileBusy",
	33: "TestPoint33Receive; hostlib/scoll: TestPoint33NothingIsDropped TestForgedReplies",
	34: "TestPoint34ReplyBuffersMatch; hostlib/scoll: TestForgedReplies",
	35: "TestPoint35LargeReplies; hostlib/scoll: TestPoint35LargeReplies TestPoint35ConcatenationInFewMessages",
	36: "TestPoint36Bulk; hostlib/scoll: TestPoint36Bulk TestPoint36Pull TestPoint36RevokedWhileRead",
	37: "TestPoint37AggregationIsTheServices; hostlib/scoll: TestPoint37StatusesOverNodes TestPoint37ReplyByReplyOrAtOnce; hostlib/scoll/aggregate: TestPoint37Statuses TestPoint37Parts TestPoint37Vector",
	38: "TestPoint38Identity; hostlib/scoll: TestForgedRequests TestStaleGroup",
	39: "TestPoint39DigestOfOutOfBand; hostlib/scoll: TestPoint39DigestOfOutOfBand",
	40: "TestPoint40SubsetOfTheAlive; hostlib/scoll: TestPoint40SubsetOfTheAlive",
	41: "TestPoint41Destruction; hostlib/scoll: TestPoint41Destruction",
	42: "TestPoint42QuickReboot; internal/core/member: TestStealth TestDeathsReportRebootsAndAreNotReported",
	43: "TestPoint43Versions; hostlib/scoll: TestPoint43Versions",
	44: "internal/sim/servers: TestPoint44And49GrowAsLogN",
	45: "TestPoint45PluggableTrees; internal/sim/servers: BenchmarkLastLeaf; hostlib/scoll: TestPoint45OwnTree TestPoint45Priority; ranktree: TestEveryLinkOnce; hostlib/scoll/fabrictree: TestAlongTheManagersTree",
	46: "ranktree: TestPoint46Binomial",
	47: "TestTranscripts; ranktree: TestPoint47Rounds",
	48: "ranktree: TestPoint48KNomial",
	49: "internal/sim/servers: TestPoint44And49GrowAsLogN TestPoint49Formulas",
	50: "TestPoint50RotatedRoots; ranktree: TestPoint50Complete",
	51: "ranktree: TestPoint51DeepestFirst",
	52: "TestPoint52OrderOfMembers; hostlib/scoll/fabrictree: TestPoint52OrderOfMembers",
}

// TestEveryPointHasItsTest: the table names tests that exist.
func TestEveryPointHasItsTest(t *testing.T) {
	if len(points) != 53 {
		t.Fatalf("%d points, want 52", len(points)-1)
	}
	known := map[string]map[string]bool{}
	for number, tests := range points[1:] {
		dir, any := ".", false
		for word := range strings.FieldsFuncSeq(tests, func(r rune) bool { return r == ' ' || r == ';' }) {
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
			any = true
		}
		if !any {
			t.Errorf("point %d has no test", number+1)
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
