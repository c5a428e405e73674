// Common steps for the switch's own packets. Ingress sets the type and the
// receivers of a packet; egress writes the addresses. The steps of actions are
// macros, because an action that is called by another gets copies of whole
// headers.

#define TO_CHILD \
    m.send = 1; \
    m.instance = hdr.tree.child + 1; \
    std.egress_spec = (bit<9>)hdr.tree.child_port;

#define TO_PARENT \
    m.send = 1; \
    m.up = 1; \
    m.instance = PARENT; \
    std.egress_spec = (bit<9>)hdr.tree.parent_port;

#define TO_GROUP(which) \
    m.send = 1; \
    std.mcast_grp = m.epoch * GROUPS_PER_EPOCH + which;

// A packet without a signature.
#define BECOME(type_) \
    hdr.chunk.type = type_; \
    hdr.chunk.flags = 0; \
    hdr.chunk.exponent = 0; \
    hdr.claim.elements = 0; \
    hdr.claim.operation = 0; \
    hdr.claim.chunk_elements = 0; \
    hdr.claim.collective = 0; \
    hdr.claim.function = 0; \
    hdr.claim.root = 0; \
    hdr.claim.element = 0;

// A packet with the slot's signature.
#define BECOME_SLOT(type_) \
    hdr.chunk.type = type_; \
    hdr.claim.elements = hdr.slot.signature[103:72]; \
    hdr.claim.operation = hdr.slot.signature[71:56]; \
    hdr.claim.chunk_elements = hdr.slot.signature[55:40]; \
    hdr.claim.collective = hdr.slot.signature[39:36]; \
    hdr.claim.function = hdr.slot.signature[35:32]; \
    hdr.claim.root = hdr.slot.signature[31:8]; \
    hdr.claim.element = hdr.slot.signature[7:0];

// The packet, which has no payload, gets the value of the slot.
#define LOAD \
    m.work = DO_LOAD; \
    m.occupy = 1;

// The flags of a partial.
#define FLAGS_OF_PARTIAL (hdr.slot.source * SOURCE | (hdr.slot.wants != 0 ? SINK : 0))

// The slot starts over with this packet's number; what it held is
// discarded.
#define CLAIM(state_) \
    hdr.slot.state = state_; \
    served.write(m.place, m.served); \
    states.write(m.place, state_); \
    arrived.write(m.place, 0); \
    wants.write(m.place, 0); \
    repairs.write(m.place, 0);

#define TURN_TO(state_) \
    hdr.slot.state = state_; \
    states.write(m.place, state_);

// The slot fails, and reports to all neighbours except the reporter.
#define FAIL \
    TURN_TO(FAILED) \
    m.spread = 1; \
    m.bare = 1; \
    m.work = DO_NOTHING; \
    m.occupy = 0;

// ... because of what was found here.
#define DISAGREE(kind_, first_, second_) \
    FAIL \
    hdr.disagreement.setValid(); \
    hdr.disagreement.kind = kind_; \
    hdr.disagreement.zero = 0; \
    hdr.disagreement.first = hdr.slot.signature ++ first_; \
    hdr.disagreement.second = m.signature ++ second_;
