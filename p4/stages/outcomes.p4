// Outcomes of packets. Each packet to a tree is counted by one outcome; each
// that is for no tree and is not forwarded, by a discard.
// docs/protocol.md gives the reasons and the faults; the numbers of the first
// two ranges are those of switchreduce.Drop and 16 + wire.Fault.

const bit<8> DROP_GROUP = 1;
const bit<8> DROP_EPOCH = 2;
const bit<8> DROP_STALE = 3;
const bit<8> DROP_ADDRESS = 4;
const bit<8> DROP_CHILD = 5;
const bit<8> DROP_COOKIE = 6;
const bit<8> DROP_SIZE = 7;
const bit<8> DROP_BODY = 8;
const bit<8> DROP_LATE = 9;
const bit<8> DROP_DUPLICATE = 10;
const bit<8> DROP_UNASKED = 11;
const bit<8> DROP_UNFIT = 12;

const bit<8> FAULT_TRUNCATED = 17;
const bit<8> FAULT_VERSION = 18;
const bit<8> FAULT_TYPE = 19;
const bit<8> FAULT_FLAGS = 20;
const bit<8> FAULT_SIGNATURE = 21;
const bit<8> FAULT_LENGTH = 22;
const bit<8> FAULT_EXPONENT = 23;

const bit<8> TAKEN = 32;            // a contribution; others are missing
const bit<8> TAKEN_PARTIAL = 33;    // ... the last one: a partial goes up
const bit<8> TAKEN_RESULT = 34;     // ... the last one at the root: the result goes down
const bit<8> TAKEN_NO_SOURCE = 35;  // ... the last one at the root, and none is the source: an error
const bit<8> DISAGREED = 36;        // a contribution that makes the slot fail
const bit<8> TOLD_ERROR = 37;       // an error from a neighbour
const bit<8> RESULT_TAKEN = 38;     // the parent's result
const bit<8> ASKED_RESULT = 39;     // a probe, answered with the result
const bit<8> ASKED_ERROR = 40;      // ... with the error
const bit<8> ASKED_WANT = 41;       // ... with want
const bit<8> ASKED_HEARD = 42;      // ... with heard
const bit<8> RELAYED_HEARD = 43;    // ... with heard, and the parent is probed
const bit<8> ASKED_LOST = 44;       // ... with lost
const bit<8> RELAYED_LOST = 45;     // ... with lost, and the parent is probed
const bit<8> IDLED = 46;            // an idle probe
const bit<8> IDLED_ON = 47;         // ... of the lowest child, forwarded
const bit<8> NOTED = 48;            // the parent's heard or lost
const bit<8> RESENT = 49;           // the parent's want: the partial goes up again
const bit<8> HANDED = 50;           // for the agent
const bit<8> LOOPED = 51;           // it needs more room: it loops, and gets its outcome afterwards

const int OUTCOMES = 64;  // counters a tree

const bit<8> DISCARD_PARSER = 1;    // the packet ends before its headers do
const bit<8> DISCARD_CHECKSUM = 2;  // of IPv4 or UDP; for a tree, also none of UDP
const bit<8> DISCARD_PROTOCOL = 3;  // not IPv4
const bit<8> DISCARD_TTL = 4;
const bit<8> DISCARD_ROUTE = 5;     // no prefix matches its address
const bit<8> DISCARD_LOCAL = 6;     // for this switch, and for no tree
const bit<8> DISCARD_LENGTH = 7;    // for a tree; its lengths contradict each other
const int DISCARDS = 8;

// Packets of an epoch that count for leases.
const int TRAFFIC_CHILD = 0;   // admitted, from a child
const int TRAFFIC_PARENT = 1;  // admitted, from the parent
const int TRAFFIC_UP = 2;      // sent to the parent
const int TRAFFICS = 4;        // counters an epoch
