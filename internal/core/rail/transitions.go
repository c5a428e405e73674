package rail

// A Transition is a row of Dance: in State, Input leads to Next, and Output is sent.
type Transition struct{ Side, State, Input, Output, Next string }

// Sides of a Transition.
const (
	Sender   = "sender"
	Receiver = "receiver"
)

// Dance has all transitions of a request in and around a restart. Whatever else comes in a
// state changes nothing and has no answer: it is late. Own fragments are those that a side
// has sent for the request; the messages of the dance have rows of their own. A receiver is
// overtaken when the envelope of the restart has come before it was drained.
var Dance = []Transition{
	{Sender, "offered", "last own fragment fails", "RNDVRESTARTNOTIFY", "notifying"},
	{Sender, "offered", "RECVERRNOTIFY", "", "draining"},
	{Sender, "offered", "RNDVRESTARTNACK", "", "ending"},
	{Sender, "offered", "FIN", "", "ending"},
	{Sender, "streaming", "own fragment fails", "", "draining"},
	{Sender, "streaming", "RECVERRNOTIFY", "", "draining"},
	{Sender, "streaming", "RNDVRESTARTNACK", "", "ending"},
	{Sender, "finishing", "FIN fails", "FIN", "finishing"},
	{Sender, "finishing", "FIN completes", "", "gone"},
	{Sender, "draining", "last own fragment fails", "RNDVRESTARTNOTIFY", "notifying"},
	{Sender, "draining", "last own fragment completes", "RNDVRESTARTNOTIFY", "notifying"},
	{Sender, "draining", "RNDVRESTARTNACK", "", "ending"},
	{Sender, "draining", "FIN", "", "ending"},
	{Sender, "notifying", "RNDVRESTARTNOTIFY fails", "RNDVRESTARTNOTIFY", "notifying"},
	{Sender, "notifying", "RNDVRESTARTNOTIFY completes", "", "waiting"},
	{Sender, "notifying", "RNDVRESTARTACK", "", "answered"},
	{Sender, "notifying", "RNDVRESTARTNACK", "", "ending"},
	{Sender, "notifying", "FIN", "", "ending"},
	{Sender, "waiting", "RNDVRESTARTACK", "RGET", "offered"},
	{Sender, "waiting", "RNDVRESTARTNACK", "", "gone"},
	{Sender, "waiting", "FIN", "", "gone"},
	{Sender, "answered", "RNDVRESTARTNOTIFY fails", "RGET", "offered"},
	{Sender, "answered", "RNDVRESTARTNOTIFY completes", "RGET", "offered"},
	{Sender, "answered", "RNDVRESTARTNACK", "", "ending"},
	{Sender, "answered", "FIN", "", "ending"},
	{Sender, "ending", "RNDVRESTARTNOTIFY fails", "", "gone"},
	{Sender, "ending", "RNDVRESTARTNOTIFY completes", "", "gone"},

	{Receiver, "unmatched", "next RNDVRESTARTNOTIFY", "RNDVRESTARTACK", "awaited"},
	{Receiver, "unmatched", "receive posted", "ACK", "taking"},
	{Receiver, "awaited", "receive posted", "", "ready"},
	{Receiver, "awaited", "RNDV", "", "unmatched"},
	{Receiver, "awaited", "next RNDV", "", "unmatched"},
	{Receiver, "awaited", "next RNDVRESTARTNOTIFY", "RNDVRESTARTACK", "awaited"},
	{Receiver, "awaited", "RNDVRESTARTACK fails", "RNDVRESTARTACK", "awaited"},
	{Receiver, "taking", "last own fragment fails", "RECVERRNOTIFY", "asking"},
	{Receiver, "taking", "next RNDVRESTARTNOTIFY", "", "resetting"},
	{Receiver, "taking", "next RNDV", "", "overtaken"},
	{Receiver, "taking", "all FRAG", "", "gone"},
	{Receiver, "draining", "RNDVRESTARTACK fails", "RECVERRNOTIFY", "asking"},
	{Receiver, "draining", "RNDVRESTARTACK completes", "RECVERRNOTIFY", "asking"},
	{Receiver, "draining", "next RNDVRESTARTNOTIFY", "", "resetting"},
	{Receiver, "draining", "next RNDV", "", "overtaken"},
	{Receiver, "draining", "all FRAG", "", "gone"},
	{Receiver, "asking", "RECVERRNOTIFY fails", "RECVERRNOTIFY", "asking"},
	{Receiver, "asking", "next RNDVRESTARTNOTIFY", "", "resetting"},
	{Receiver, "asking", "next RNDV", "", "overtaken"},
	{Receiver, "asking", "all FRAG", "", "gone"},
	{Receiver, "resetting", "last own fragment fails", "RNDVRESTARTACK", "ready"},
	{Receiver, "resetting", "last own fragment completes", "RNDVRESTARTACK", "ready"},
	{Receiver, "resetting", "RNDV", "", "overtaken"},
	{Receiver, "resetting", "next RNDV", "", "overtaken"},
	{Receiver, "resetting", "next RNDVRESTARTNOTIFY", "", "resetting"},
	{Receiver, "overtaken", "last own fragment fails", "ACK", "taking"},
	{Receiver, "overtaken", "last own fragment completes", "ACK", "taking"},
	{Receiver, "overtaken", "next RNDVRESTARTNOTIFY", "", "resetting"},
	{Receiver, "ready", "RNDVRESTARTACK fails", "RNDVRESTARTACK", "ready"},
	{Receiver, "ready", "RNDV", "ACK", "taking"},
	{Receiver, "ready", "next RNDV", "", "overtaken"},
	{Receiver, "ready", "next RNDVRESTARTNOTIFY", "", "resetting"},
	{Receiver, "gone", "RNDV", "RNDVRESTARTNACK", "gone"},
	{Receiver, "gone", "next RNDV", "RNDVRESTARTNACK", "gone"},
	{Receiver, "gone", "RNDVRESTARTNOTIFY", "RNDVRESTARTNACK", "gone"},
	{Receiver, "gone", "next RNDVRESTARTNOTIFY", "RNDVRESTARTNACK", "gone"},
}
