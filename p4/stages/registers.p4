// The slots, without their values. One register for each field: on bmv2, reading
// one costs less than extracting it from a wider one. An action has exclusive
// access to its registers, and ingress is one thread.

register<served_t>(SLOTS) served;   // 0: never used
register<bit<8>>(SLOTS) states;
register<children_t>(SLOTS) arrived;
register<children_t>(SLOTS) wants;
register<signature_t>(SLOTS) signatures;
register<bit<48>>(SLOTS) ranks;     // beneath the child that contributed first, and beneath the source

// Of block32: while contributions are missing, the exponents of those that are
// held, as in fold_t; afterwards that of the value.
register<bit<64>>(BLOCK_SLOTS) exponents;

// Only for repair and broadcasts: whether there is a source, whether the parent
// answered lost, the unanswered probes to it, the bytes of the value.
register<bit<32>>(SLOTS) repairs;
#define REPAIRS (6w0 ++ hdr.slot.source[0:0] ++ hdr.slot.lost[0:0] ++ hdr.slot.unanswered ++ hdr.slot.length)

// The values, block by block: five blocks, the rest of a whole chunk, or the tail
// of a shorter one.
register<bit<2048>>(SLOTS) held0;
register<bit<2048>>(SLOTS) held1;
register<bit<2048>>(SLOTS) held2;
register<bit<2048>>(SLOTS) held3;
register<bit<2048>>(SLOTS) held4;
register<bit<1216>>(SLOTS) held_rest;
register<bit<1024>>(SLOTS) held_tail128;
register<bit<512>>(SLOTS) held_tail64;
register<bit<256>>(SLOTS) held_tail32;
register<bit<128>>(SLOTS) held_tail16;
register<bit<64>>(SLOTS) held_tail8;
register<bit<32>>(SLOTS) held_tail4;
register<bit<16>>(SLOTS) held_tail2;
