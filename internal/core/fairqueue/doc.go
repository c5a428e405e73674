// Package fairqueue gives turns to those who wait, fairly: who asks for a hundred times
// what others ask for delays itself alone.
//
// It is start-time fair queueing (Goyal, Vin and Cheng, Start-time Fair Queueing, IEEE/ACM
// Transactions on Networking 5(5), 1997), on two levels: classes have turns by their
// weights, and the flows of a class have equal shares of its turns. Each request has an
// estimated cost. A class or flow has a start tag, and the lowest one is served:
//
//	what happens                     the tag
//	Push, it has nothing waiting     max(its tag, the level's time)
//	Push, it has something waiting   -
//	Pop serves it                    grows by the request's cost over the weight; the level's time is what it was before
//	Charge                           grows likewise, without a request
//	Remove of a request              -
//	the level has nothing waiting    forgotten with all others: nobody owes anything after an idle time
//
// So within any time in which two classes both wait, what they are served differs, over
// their weights, by no more than the largest request of each (theorem 1 there). Requests
// of a flow are served in their order.
//
// It is a pure data structure: deterministic, without goroutine, lock or clock.
package fairqueue
