// The slots, but for their values, which are with the blocks. A register a field:
// on bmv2, to read one costs less than to take it out of a wider one. An action
// that uses some of them has them for itself, and ingress is one thread.

register<served_t>(SLOTS) served;   // 0: nothing ever
register<bit<8>>(SLOTS) states;
register<children_t>(SLOTS) arrived;
register<children_t>(SLOTS) wants;
register<signature_t>(SLOTS) signatures;
register<bit<48>>(SLOTS) ranks;     // beneath the child that contributed first, and beneath the source

// Of block32: while contributions are missing, the exponents of those that are
// held, as in fold_t; afterwards that of the value.
register<bit<64>>(BLOCK_SLOTS) exponents;

// What only repair and broadcasts need: whether there is a source, whether the
// parent said lost, the probes to it without an answer, the bytes of the value.
register<bit<32>>(SLOTS) repairs;
#define REPAIRS (6w0 ++ hdr.slot.source[0:0] ++ hdr.slot.lost[0:0] ++ hdr.slot.unanswered ++ hdr.slot.length)
