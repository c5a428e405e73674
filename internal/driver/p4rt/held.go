package p4rt

import (
	"context"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// Held returns the name and version of the program that the target holds, by
// that program's own P4Info, so that an earlier version of one's own can be distinguished
// from a stranger's. Both are empty if it does not report them.
func (c *Client) Held(ctx context.Context) (name, version string, err error) {
	l, err := c.connected()
	if err != nil {
		return "", "", c.fail("asking for the program", err)
	}
	config, err := c.get(ctx, l, c.cfg.Deadline, p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE)
	if err != nil {
		return "", "", c.fail("asking for the program", err)
	}
	info := config.GetP4Info().GetPkgInfo()
	return info.GetName(), info.GetVersion(), nil
}
