package sim

// due is what an event is about.
type due uint8

const (
	timerDue    due = iota // node: its deadline may have come
	wakeDue                // node: takes its inbox
	datagramDue            // path, port, from, bytes
	itemDue                // path, stream, token: the item's number
	connectDue             // path, token: of the connection's last attempt
	patienceDue            // path, token: of the connection's last attempt or cut
	callDue                // call
)

type event struct {
	kind       due
	stream     uint8
	from, port uint16
	node       NodeID
	path       int32
	token      uint64
	bytes      []byte
	call       *call
}

// call is a function to be called by the world.
type call struct {
	name string
	do   func()
}
