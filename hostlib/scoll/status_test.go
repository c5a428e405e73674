package scoll

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// TestStatuses: the public names are those of the wire, all of them.
func TestStatuses(t *testing.T) {
	all := map[Status]bool{
		StatusOK: true, StatusNoService: true, StatusNoGroup: true, StatusWrongParent: true, StatusDisagree: true, StatusNoTree: true,
		StatusNotMember: true, StatusStaleRoot: true, StatusRefused: true, StatusNoBuffer: true, StatusFailed: true,
		StatusBulkFailed: true, StatusAborted: true, StatusNoReply: true, StatusDenied: true, StatusUnproven: true, StatusUnsent: true, StatusDead: true,
		StatusRebooted: true, StatusExpired: true, StatusOverflow: true, StatusUnreadable: true, StatusRootDied: true, StatusOutdated: true,
	}
	for s := range 256 {
		status := Status(s)
		if broadcastmsg.Status(s).Valid() != all[status] {
			t.Errorf("%v: %v", status, all[status])
		}
		if (status.Err() == nil) != (status == StatusOK) || all[status] && (status.Type() == NoError) != (status == StatusOK) {
			t.Errorf("%v is of type %v, error %v", status, status.Type(), status.Err())
		}
	}
}
