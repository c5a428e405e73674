// Code generated from the P4 program by go generate; DO NOT EDIT.

package p4

// The program's name and version, as its P4Info gives them.
const (
	Name    = "tributary"
	Version = "1"
)

// Tables, and the fields of their keys.
const (
	TableRoutes            uint32 = 44814351
	FieldRoutesPrefix      uint32 = 1 // 32 bits
	TableEpochs            uint32 = 40044571
	FieldEpochsTree        uint32 = 1 // 16 bits
	FieldEpochsNumber      uint32 = 2 // 32 bits
	TableNeighbours        uint32 = 36568004
	FieldNeighboursEpoch   uint32 = 1 // 16 bits
	FieldNeighboursPort    uint32 = 2 // 16 bits
	FieldNeighboursAddress uint32 = 3 // 32 bits
	FieldNeighboursUDP     uint32 = 4 // 16 bits
	TableTrees             uint32 = 36336620
	FieldTreesUDP          uint32 = 1 // 16 bits
	TablePorts             uint32 = 35576929
	FieldPortsNumber       uint32 = 1 // 9 bits
	TableRewrite           uint32 = 50025979
	FieldRewriteEpoch      uint32 = 1 // 16 bits
	FieldRewriteInstance   uint32 = 2 // 16 bits
)

// Actions of their entries.
const (
	ActionForward   uint32 = 19111397
	ActionLocal     uint32 = 29186011
	ActionEpoch     uint32 = 29679466
	ActionChild     uint32 = 33168792
	ActionParent    uint32 = 28773941
	ActionTree      uint32 = 17043942
	ActionPort      uint32 = 21869138
	ActionNeighbour uint32 = 19085339
)

// Counters.
const (
	CounterDiscards  uint32 = 312595367 // 8 cells
	CounterOutcomes  uint32 = 315653280 // 4096 cells
	CounterTraffic   uint32 = 314223367 // 1024 cells
	CounterReceived  uint32 = 311007089 // 16384 cells
	CounterForged    uint32 = 314150702 // 16384 cells
	CounterSent      uint32 = 311305833 // 16384 cells
	CounterShortened uint32 = 304691332 // 16384 cells
)

// Fields of the headers of packets from and to the pipeline, of 16 bits each.
const (
	PacketInPort  uint32 = 1
	PacketInTree  uint32 = 2
	PacketInEpoch uint32 = 3
	PacketOutPort uint32 = 1
)

// Limits, as stages/limits.p4 explains them.
const (
	Chunk          = 1432  // bytes: largest payload, of an MTU of 1500
	Slots          = 4096  // chunks at once, over all groups
	Children       = 32    // of one tree, as many as a bitmap has bits
	Neighbours     = 64    // counters an epoch of what it exchanges: the parent's, then the children's
	BlockSlots     = 1024  // the first of them, for sums of block32
	BlockChildren  = 8     // of a tree whose sums of block32 the pipeline computes
	Trees          = 64    // at once
	Epochs         = 256   // at once, over all trees
	Routes         = 1024  // IPv4 prefixes
	Ports          = 507   // of the switch, numbered from 1
	MaxProbes      = 255   // unanswered ones after which a parent may count as lost
	SerialBits     = 48    // of an epoch's serial number
	TreePorts      = 49152 // UDP port of tree 0; that of tree i is i above
	CPUPort        = 510
	LoopOutPort    = 508
	LoopInPort     = 509
	LoopBytes      = 480   // growth of a packet in one round
	CheckType      = 34998 // EtherType 0x88b6: frames by which the agent checks that the loop is there
	GroupsPerEpoch = 4
	GroupChildren  = 1     // every child
	GroupAll       = 2     // every child and the parent
	GroupPair      = 3     // the lowest child and the parent
	Parent         = 65535 // instance
)

// Numbers of counters, as stages/outcomes.p4 explains them.
const (
	Outcomes      = 64 // counters a tree
	Discards      = 8
	TrafficChild  = 0 // admitted, from a child
	TrafficParent = 1 // admitted, from the parent
	TrafficUp     = 2 // sent to the parent
	Traffics      = 4 // counters an epoch
)

// The outcomes.
const (
	DropGroup      Outcome = 1
	DropEpoch      Outcome = 2
	DropStale      Outcome = 3
	DropAddress    Outcome = 4
	DropChild      Outcome = 5
	DropCookie     Outcome = 6
	DropSize       Outcome = 7
	DropBody       Outcome = 8
	DropLate       Outcome = 9
	DropDuplicate  Outcome = 10
	DropUnasked    Outcome = 11
	DropUnfit      Outcome = 12
	FaultTruncated Outcome = 17
	FaultVersion   Outcome = 18
	FaultType      Outcome = 19
	FaultFlags     Outcome = 20
	FaultSignature Outcome = 21
	FaultLength    Outcome = 22
	FaultExponent  Outcome = 23
	Taken          Outcome = 32 // a contribution; others are missing
	TakenPartial   Outcome = 33 // ... the last one: a partial goes up
	TakenResult    Outcome = 34 // ... the last one at the root: the result goes down
	TakenNoSource  Outcome = 35 // ... the last one at the root, and none is the source: an error
	Disagreed      Outcome = 36 // a contribution that makes the slot fail
	ToldError      Outcome = 37 // an error from a neighbour
	ResultTaken    Outcome = 38 // the parent's result
	AskedResult    Outcome = 39 // a probe, answered with the result
	AskedError     Outcome = 40 // ... with the error
	AskedWant      Outcome = 41 // ... with want
	AskedHeard     Outcome = 42 // ... with heard
	RelayedHeard   Outcome = 43 // ... with heard, and the parent is probed
	AskedLost      Outcome = 44 // ... with lost
	RelayedLost    Outcome = 45 // ... with lost, and the parent is probed
	Idled          Outcome = 46 // an idle probe
	IdledOn        Outcome = 47 // ... of the lowest child, forwarded
	Noted          Outcome = 48 // the parent's heard or lost
	Resent         Outcome = 49 // the parent's want: the partial goes up again
	Handed         Outcome = 50 // for the agent
	Looped         Outcome = 51 // it needs more room: it loops, and gets its outcome afterwards
)

// The discards.
const (
	DiscardParser   Discard = 1 // the packet ends before its headers do
	DiscardChecksum Discard = 2 // of IPv4 or UDP; for a tree, also none of UDP
	DiscardProtocol Discard = 3 // not IPv4
	DiscardTTL      Discard = 4
	DiscardRoute    Discard = 5 // no prefix matches its address
	DiscardLocal    Discard = 6 // for this switch, and for no tree
	DiscardLength   Discard = 7 // for a tree; its lengths contradict each other
)

var outcomeNames = [Outcomes]string{
	DropGroup:      "drop-group",
	DropEpoch:      "drop-epoch",
	DropStale:      "drop-stale",
	DropAddress:    "drop-address",
	DropChild:      "drop-child",
	DropCookie:     "drop-cookie",
	DropSize:       "drop-size",
	DropBody:       "drop-body",
	DropLate:       "drop-late",
	DropDuplicate:  "drop-duplicate",
	DropUnasked:    "drop-unasked",
	DropUnfit:      "drop-unfit",
	FaultTruncated: "fault-truncated",
	FaultVersion:   "fault-version",
	FaultType:      "fault-type",
	FaultFlags:     "fault-flags",
	FaultSignature: "fault-signature",
	FaultLength:    "fault-length",
	FaultExponent:  "fault-exponent",
	Taken:          "taken",
	TakenPartial:   "taken-partial",
	TakenResult:    "taken-result",
	TakenNoSource:  "taken-no-source",
	Disagreed:      "disagreed",
	ToldError:      "told-error",
	ResultTaken:    "result-taken",
	AskedResult:    "asked-result",
	AskedError:     "asked-error",
	AskedWant:      "asked-want",
	AskedHeard:     "asked-heard",
	RelayedHeard:   "relayed-heard",
	AskedLost:      "asked-lost",
	RelayedLost:    "relayed-lost",
	Idled:          "idled",
	IdledOn:        "idled-on",
	Noted:          "noted",
	Resent:         "resent",
	Handed:         "handed",
	Looped:         "looped",
}

var discardNames = [Discards]string{
	DiscardParser:   "parser",
	DiscardChecksum: "checksum",
	DiscardProtocol: "protocol",
	DiscardTTL:      "ttl",
	DiscardRoute:    "route",
	DiscardLocal:    "local",
	DiscardLength:   "length",
}

// own are the functions that the program reduces by itself, by element type, as
// stages/soundness.p4 has them: a bit a function.
var own = [...]uint32{
	0: 0x0,
	1: 0x7fa,
	2: 0x7fa,
	3: 0x7fa,
	4: 0x7fa,
	5: 0x18,
	6: 0x18,
	7: 0x18,
	8: 0x18,
	9: 0x2,
}
