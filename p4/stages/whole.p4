// The most common operations, on all blocks of a whole chunk in one action: on
// bmv2 a table and a validity check for each block cost as much as its arithmetic.

control Whole(inout block_2048_t block0, inout block_2048_t block1, inout block_2048_t block2, inout block_2048_t block3,
              inout block_2048_t block4, inout block_1216_t rest, inout scratch_t scratch, inout metadata m) {
#define EACH(step) \
    step(block0.value, held0, 2048) \
    step(block1.value, held1, 2048) \
    step(block2.value, held2, 2048) \
    step(block3.value, held3, 2048) \
    step(block4.value, held4, 2048) \
    step(rest.value, held_rest, 1216)
#define HELD(width) scratch.WIDE(a, width)

#define STORE(v, held, width) held.write(m.place, v);
    @hidden action store() { EACH(STORE) }

#define LOAD_(v, held, width) held.read(v, m.place);
    @hidden action load() { EACH(LOAD_) }

#define AND_(v, held, width) held.read(HELD(width), m.place); v = HELD(width) & v; held.write(m.place, v);
    @hidden action do_and() { EACH(AND_) }

#define OR_(v, held, width) held.read(HELD(width), m.place); v = HELD(width) | v; held.write(m.place, v);
    @hidden action do_or() { EACH(OR_) }

#define XOR_(v, held, width) held.read(HELD(width), m.place); v = HELD(width) ^ v; held.write(m.place, v);
    @hidden action do_xor() { EACH(XOR_) }

#define SWAP_(v, held, width) held.write(m.place, SWAPPED_32(v, width));
    @hidden action store_swap32() { EACH(SWAP_) }

#define SUM_(v, held, width) held.read(HELD(width), m.place); held.write(m.place, SUM_32(v, HELD(width), width));
    @hidden action sum32() { EACH(SUM_) }

#define LAST_(v, held, width) held.read(HELD(width), m.place); v = SUM_32(v, HELD(width), width); \
    v = SWAPPED_32(v, width); held.write(m.place, v);
    @hidden action last32() { EACH(LAST_) }

#undef STORE
#undef LOAD_
#undef AND_
#undef OR_
#undef XOR_
#undef SWAP_
#undef SUM_
#undef LAST_
#undef HELD
#undef EACH

    @hidden
    table work {
        key = { m.work: exact; }
        actions = { store; load; do_and; do_or; do_xor; store_swap32; sum32; last32; NoAction; }
        const default_action = NoAction;
        const entries = {
            DO_STORE: store();
            DO_LOAD: load();
            DO_AND: do_and();
            DO_OR: do_or();
            DO_XOR: do_xor();
            DO_SWAP32: store_swap32();
            DO_SUM32: sum32();
            DO_LAST32: last32();
        }
    }

    apply {
        work.apply();
    }
}
