package p4

// Entry is one entry of a table, in the numbers of the P4Info.
type Entry struct {
	Table    uint32
	Match    []Field // in the order of the table's keys
	Priority int     // 0: no table of the program has ternary keys
	Action   uint32
	Params   [][]byte // in the order of the action's parameters
}

// Field is the value of one key. Values, those of parameters too, are
// big-endian and as long as the field, rounded up to bytes.
type Field struct {
	ID     uint32
	Value  []byte
	Prefix int // bits that count, of a key that is matched by its longest prefix; 0 where the key is exact
}

// Group is a multicast group.
type Group struct {
	ID       uint32
	Replicas []Replica // in rising order of Instance
}

// Replica is one copy that a group makes. The instance says to the pipeline's
// egress whom the copy is for.
type Replica struct {
	Port     uint16
	Instance uint16
}

// Program is all that a control plane writes into the pipeline, in the order in
// which it may be written, groups first: nothing refers to what comes later.
// Removals go the other way.
type Program struct {
	Groups  []Group
	Entries []Entry
}
