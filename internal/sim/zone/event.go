package zone

import "github.com/tributary-fabric/tributary/internal/wire/gossip"

// what is due.
type due uint8

const (
	timerDue  due = iota // node: its deadline may have come
	readyDue             // node: takes the next of its inbox
	packetDue            // node: item
	pulseDue             // node: tag, sequence, turns
	dialDue              // conn: the dial is at the other end
	answerDue            // conn: its answer is back
	streamDue            // conn, side: the next of its stream
	callDue              // call
)

type event struct {
	kind  due
	side  uint8
	node  int32
	life  uint32
	conn  int32
	pulse gossip.Pulse
	item  *item
	call  func()
}
