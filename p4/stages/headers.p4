// Headers on the wire, and the pipeline's metadata of a packet.

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const bit<16> ETHERTYPE_LLDP = 0x88cc;
const bit<16> ETHERTYPE_LOOP = 0x88b5;  // of this switch, only on its loop
const bit<8> PROTOCOL_UDP = 17;

const bit<4> VERSION = 1;

const bit<4> CONTRIBUTION = 1;
const bit<4> RESULT = 2;
const bit<4> PROBE = 3;
const bit<4> HEARD = 4;
const bit<4> WANT = 5;
const bit<4> LOST = 6;
const bit<4> ERROR = 7;

const bit<8> SOURCE = 0x01;
const bit<8> SINK = 0x02;
const bit<8> IDLE = 0x04;

const bit<4> ALLREDUCE = 1;
const bit<4> REDUCE = 2;
const bit<4> BROADCAST = 3;
const bit<4> BARRIER = 4;

const bit<8> BLOCK32 = 9;  // the only element type with a special case in the pipeline

const bit<8> MISMATCH = 1;
const bit<8> TWO_SOURCES = 2;
const bit<8> NO_SOURCE = 3;

const bit<16> LINK_BYTES = 14;   // of an Ethernet header
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
const bit<16> HEADER_BYTES = 40;  // of Tributary's header
const bit<16> ERROR_BYTES = 40;   // payload of an error

// A signature as one number: the bits of the header from elements to element
// type, compared in one operation.
typedef bit<104> signature_t;
typedef bit<24> rank_t;

// The chunk that a slot serves: the serial number of its epoch, and its own.
typedef bit<80> served_t;

// To the agent: the ingress port, and the indices of tree and epoch.
@controller_header("packet_in")
header packet_in_t {
    bit<16> port;
    bit<16> tree;
    bit<16> epoch;
}

// From the agent: the egress port, or 0 for routing.
@controller_header("packet_out")
header packet_out_t {
    bit<16> port;
}

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> words;  // of this header
    bit<8> service;
    bit<16> length;
    bit<16> identification;
    bit<1> reserved;
    bit<1> dont_fragment;
    bit<1> more_fragments;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header udp_t {
    bit<16> source;
    bit<16> destination;
    bit<16> length;
    bit<16> checksum;
}

// The first 24 bytes of Tributary's header: which chunk of which tree.
header chunk_t {
    bit<4> version;
    bit<4> type;
    bit<8> flags;
    bit<16> child;
    bit<32> group;
    bit<32> epoch;
    bit<48> cookie;
    bit<8> reserved;  // 0
    bit<8> exponent;  // of a chunk in block floating point
    bit<32> number;
}

// The other 16 bytes: the signature, and its rank.
header claim_t {
    bit<32> elements;
    bit<16> operation;
    bit<16> chunk_elements;
    bit<4> collective;
    bit<4> function;
    rank_t root;
    bit<8> element;
    rank_t lowest;
}

// The payload of an error: two contradictory claims.
header disagreement_t {
    bit<8> kind;
    bit<56> zero;
    bit<128> first;
    bit<128> second;
}

// A payload is blocks of 256 bytes, and a tail of blocks of decreasing size,
// each present if its bit is set in the length. The longest payload, of all
// packets of a long vector except the last, has its tail in one block.
header block_2048_t { bit<2048> value; }
header block_1216_t { bit<1216> value; }
header block_1024_t { bit<1024> value; }
header block_512_t { bit<512> value; }
header block_256_t { bit<256> value; }
header block_128_t { bit<128> value; }
header block_64_t { bit<64> value; }
header block_32_t { bit<32> value; }
header block_16_t { bit<16> value; }

// On the loop, after the Ethernet header: the number of rounds, the port by which
// the packet came to the switch, and as many pads.
header loop_t {
    bit<8> rounds;
    bit<16> port;
}

const bit<16> LOOP_HEADER_BYTES = 3;

header pad_t {
    bit<2048> first;
    bit<1792> second;
}

// Four headers that no packet has, and that never become valid: bmv2 clears all
// metadata of every packet, even if it only forwards it, and copies it with each
// copy of a packet. On bmv2 the fields of an invalid header keep what is written
// to them, but are 0 as keys of tables; on a target where they do not, move
// these to metadata.

// The tables' entries of the tree, the epoch and the neighbour.
header tree_t {
    bit<32> group;
    bit<32> newest;
    serial_t serial;
    serial_t begun;
    bit<48> cookie;  // with the neighbour
    bit<32> slot_base;
    bit<32> slot_mask;
    children_t everyone;
    bit<8> root;
    bit<16> chunk_bytes;
    bit<8> probes;
    bit<16> own;
    rank_t lowest;
    bit<16> parent_port;
    bit<16> child;
    children_t one;  // the set with only that child
    bit<16> child_port;
}

// The slot, without its values.
header slot_t {
    served_t served;
    bit<8> state;
    children_t arrived;
    children_t wants;
    signature_t signature;
    bit<8> source;      // 1: a source's chunk is held
    bit<8> lost;        // 1: the parent's last answer
    bit<16> length;     // bytes of the value, once the slot is complete, or of the source's
    bit<8> unanswered;  // probes to the parent since its last answer
    rank_t first;       // lowest rank beneath the child that contributed first
    rank_t origin;      // ... that is the source
}

// How the last contribution to a sum of block32 is folded; see block32.p4.
header fold_t {
    bit<32> own_place;  // of the contribution of the child that the packet is from
    bit<64> exponents;  // of all children, a byte each, with the sign inverted, which orders them
    bit<8> greatest;    // of those
    children_t others;  // whose contributions are kept
    bit<32> bias;       // what to add to each lane
    bit<8> own_shift;   // of the packet's mantissas
    bit<32> own_mask;   // the bits of a lane that they can have then
    bit<8> shift0;      // the same of those kept, and their places
    bit<8> shift1;
    bit<8> shift2;
    bit<8> shift3;
    bit<8> shift4;
    bit<8> shift5;
    bit<8> shift6;
    bit<8> shift7;
    bit<32> mask0;
    bit<32> mask1;
    bit<32> mask2;
    bit<32> mask3;
    bit<32> mask4;
    bit<32> mask5;
    bit<32> mask6;
    bit<32> mask7;
    bit<32> place0;
    bit<32> place1;
    bit<32> place2;
    bit<32> place3;
    bit<32> place4;
    bit<32> place5;
    bit<32> place6;
    bit<32> place7;
}

// Where blocks keep the held value (a), and intermediate values (t).
header scratch_t {
    bit<2048> a2048;
    bit<2048> t2048;
    bit<1216> a1216;
    bit<1216> t1216;
    bit<1024> a1024;
    bit<1024> t1024;
    bit<512> a512;
    bit<512> t512;
    bit<256> a256;
    bit<256> t256;
    bit<128> a128;
    bit<128> t128;
    bit<64> a64;
    bit<64> t64;
    bit<32> a32;
    bit<32> t32;
    bit<16> a16;
    bit<16> t16;
}

struct headers {
    tree_t tree;
    slot_t slot;
    fold_t fold;
    scratch_t scratch;
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    loop_t loop;
    pad_t pad0;
    pad_t pad1;
    ipv4_t ipv4;
    udp_t udp;
    chunk_t chunk;
    claim_t claim;
    disagreement_t disagreement;
    block_2048_t block0;
    block_2048_t block1;
    block_2048_t block2;
    block_2048_t block3;
    block_2048_t block4;
    block_1216_t rest;
    block_1024_t tail128;
    block_512_t tail64;
    block_256_t tail32;
    block_128_t tail16;
    block_64_t tail8;
    block_32_t tail4;
    block_16_t tail2;
}

const bit<8> VACANT = 0;
const bit<8> OPEN = 1;      // some children's contributions are held, some are missing
const bit<8> COMPLETE = 2;  // all are held and reduced, the partial is on its way up
const bit<8> FINISHED = 3;  // the result is held
const bit<8> FAILED = 4;    // an error is held
const bit<8> GIVEN = 5;     // the agent has it

const bit<2> NOBODY = 0;
const bit<2> CHILD = 1;
const bit<2> OWN_PARENT = 2;

struct metadata {
    // From the parser.
    bit<16> length;  // bytes of payload
    signature_t signature;
    bit<16> zero;
    bit<16> room;    // bytes that the packet can still grow by
    bit<16> padding; // bytes that are of the loop

    bit<16> port;    // by which the packet came to the switch, before any loop
    bit<8> local;
    bit<2> sender;

    // Of the signature.
    bit<8> forbidden; // flags that its type may not have
    bit<1> unsound;   // malformed: it, or one in an error's payload
    bit<32> size;   // bytes of the chunk
    bit<4> shift;   // logarithm of the bytes of an element
    bit<8> pair_first; // what the blocks do with values of its function and type
    bit<8> pair_more;
    bit<8> pair_last;
    bit<8> pair_only;
    bit<8> pair_fold;  // in steps
    bit<8> pair_unmap;

    // Of the slot.
    bit<32> place;
    served_t served;  // what a slot for this packet serves
    bit<32> ahead;    // its number less that of the slot

    // Actions.
    bit<8> outcome;
    bit<1> admitted;
    bit<1> spread;     // an error must be stored and sent
    bit<8> work;       // what the blocks do; see lanes.p4
    bit<8> map;        // ... in steps
    bit<8> fold;
    bit<8> unmap;
    bit<1> occupy;     // the packet gets the value of the slot
    bit<1> bare;       // the packet loses its payload
    bit<1> up;         // a packet goes to the parent
    bit<16> tree;      // index
    bit<16> epoch;     // index
    rank_t lowest;     // for egress: of tree_t and slot_t
    children_t wants;
    bit<16> value_bytes;
    bit<1> send;       // the packet that leaves is the switch's own
    bit<1> addressed;  // ... or the agent's, and gets its source address and checksums here
    bit<16> instance;  // the receiver, if there is one
    bit<16> teller;    // the neighbour to leave out
    bit<32> address;   // of the egress port
}
