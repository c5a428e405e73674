package collector

import (
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestLacksLeaves: a target that refuses paths of leaves that it lacks is asked for what they
// are in, and what is not wanted of that is left out.
func TestLacksLeaves(t *testing.T) {
	e := collect(t, Config{Address: serve(t, &target{subscribe: func(list *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error {
		for _, sub := range list.GetSubscription() {
			if len(sub.GetPath().GetElem()) > 3 {
				return status.Errorf(codes.Unimplemented, "no %v", sub.GetPath())
			}
			if sub.GetMode() == pb.SubscriptionMode_ON_CHANGE {
				return status.Error(codes.InvalidArgument, "there are counters in it")
			}
		}
		return held(s, updates(leaf(t, oper, "UP"), leaf(t, "/interfaces/interface[name=e1]/state/counters/in-octets", "5")), synced)
	}})})
	got := e.until(t, map[string]string{oper: "UP"})
	if len(got) != 2 { // with the name
		t.Errorf("%v", got)
	}
}
