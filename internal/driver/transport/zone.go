package transport

import (
	"net"
	"strconv"
)

// zoneOf returns the zone of a link-local address of IPv6: its link, by name
// here, by number in the kernel.
func zoneOf(scope uint32) string {
	if i, err := net.InterfaceByIndex(int(scope)); err == nil {
		return i.Name
	}
	return strconv.FormatUint(uint64(scope), 10)
}
