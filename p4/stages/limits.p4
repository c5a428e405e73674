// The limits of one switch. The Go package p4 takes these numbers from here.

const int CHUNK = 1432;      // bytes: largest payload, of an MTU of 1500
const int SLOTS = 4096;      // chunks at once, over all groups
const int CHILDREN = 32;     // of one tree, as many as a bitmap has bits
const int NEIGHBOURS = 64;   // counters an epoch of what it exchanges: the parent's, then the children's
const int BLOCK_SLOTS = 1024;  // the first of them, for sums of block32
const int BLOCK_CHILDREN = 8;  // of a tree whose sums of block32 the pipeline computes
const int TREES = 64;        // at once
const int EPOCHS = 256;      // at once, over all trees
const int ROUTES = 1024;     // IPv4 prefixes
const int PORTS = 507;       // of the switch, numbered from 1
const int MAX_PROBES = 255;  // unanswered ones after which a parent may count as lost
const int SERIAL_BITS = 48;  // of an epoch's serial number
const int TREE_PORTS = 49152; // UDP port of tree 0; that of tree i is i above

// The port of the agent; simple_switch_grpc is started with it as --cpu-port.
const int CPU_PORT = 510;

// Two ports that are connected to each other, from the first to the second. See
// stages/loop.p4.
const int LOOP_OUT_PORT = 508;
const int LOOP_IN_PORT = 509;
const int LOOP_BYTES = 480;  // growth of a packet in one round
const int CHECK_TYPE = 34998;  // EtherType 0x88b6: frames by which the agent checks that the loop is there

// Multicast groups and instances of epoch e: group GROUPS_PER_EPOCH * e plus
// one of these. An instance is 1 plus the index of a child, or PARENT.
const int GROUPS_PER_EPOCH = 4;
const int GROUP_CHILDREN = 1;  // every child
const int GROUP_ALL = 2;       // every child and the parent
const int GROUP_PAIR = 3;      // the lowest child and the parent
const int PARENT = 65535;      // instance

typedef bit<(CHILDREN)> children_t;  // a set of children, by index
typedef bit<(SERIAL_BITS)> serial_t;
