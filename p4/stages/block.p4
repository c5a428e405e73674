// A block of the values: BLOCK is the control's name, HEADER the type of the
// block in a packet, WIDTH its bits. All lanes are computed at once, by masked
// arithmetic on the whole word; a register for each value would cost several
// times as much. This file is included once for each width.

control BLOCK(inout HEADER block, inout scratch_t scratch, inout fold_t fold_, inout metadata m)(register<bit<WIDTH>> held) {
    @hidden
    action store() {
        held.write(m.place, block.value);
    }

    @hidden
    action first() {
        held.write(m.place, block.value);
    }

    @hidden
    action load() {
        held.read(block.value, m.place);
    }

#define BITWISE(name, op) \
    @hidden action name() { \
        held.read(A, m.place); \
        block.value = A op block.value; \
        held.write(m.place, block.value); \
    }
    BITWISE(do_and, &)
    BITWISE(do_or, |)
    BITWISE(do_xor, ^)
    BITWISE(fold_and, &)
    BITWISE(fold_or, |)
    BITWISE(fold_xor, ^)
#undef BITWISE

    // Actions on lanes exist for each lane size; a block may be too narrow for
    // one.
#define FOR_FLOATS(lane, type) \
    @hidden action minimal_ ## type() { MINIMAL(lane, type) } \
    @hidden action maximal_ ## type() { MAXIMAL(lane, type) } \
    @hidden action number_ ## type() { NUMBER(lane, type) held.write(m.place, block.value); }
#define FOR_ORDERS(lane) \
    @hidden action min ## lane() { held.read(A, m.place); LEAST(lane) held.write(m.place, block.value); } \
    @hidden action max ## lane() { held.read(A, m.place); GREATEST(lane) held.write(m.place, block.value); }
#define FOR_INTEGERS(lane) \
    @hidden action swap ## lane() { SWAP_ ## lane(block.value) } \
    @hidden action back ## lane() { SWAP_ ## lane(block.value) held.write(m.place, block.value); } \
    @hidden action signed ## lane() { SWAP_ ## lane(block.value) TURN(lane) } \
    @hidden action back_signed ## lane() { TURN(lane) SWAP_ ## lane(block.value) held.write(m.place, block.value); } \
    @hidden action truth ## lane() { TRUTH(lane) } \
    @hidden action store_swap ## lane() { SWAP_ ## lane(block.value) held.write(m.place, block.value); } \
    @hidden action sum ## lane() { \
        held.read(A, m.place); \
        ADD_SWAPPED_ ## lane \
        held.write(m.place, block.value); \
    } \
    @hidden action last ## lane() { \
        held.read(A, m.place); \
        ADD_SWAPPED_ ## lane \
        SWAP_ ## lane(block.value) \
        held.write(m.place, block.value); \
    }

    FOR_FLOATS(16, F16)
    FOR_FLOATS(16, BF16)
    FOR_ORDERS(16)
#if WIDTH >= 32
    FOR_FLOATS(32, F32)
    FOR_ORDERS(32)
    FOR_INTEGERS(32)
#endif
#if WIDTH >= 64
    FOR_FLOATS(64, F64)
    FOR_ORDERS(64)
    FOR_INTEGERS(64)
#endif
#undef FOR_FLOATS
#undef FOR_ORDERS
#undef FOR_INTEGERS

#if WIDTH >= 32
    // Sums of block32: contributions are kept big-endian, with the sign inverted,
    // and all folded with the last one.
    register<bit<WIDTH>>(BLOCK_SLOTS * BLOCK_CHILDREN) kept;

    @hidden
    action keep() {
        SWAP_32(block.value)
        TURN(32)
        kept.write(fold_.own_place, block.value);
    }

    @hidden
    action begin() {
        SWAP_32(block.value)
        TURN(32)
        block.value = SHIFTED(block.value, fold_.own_shift, fold_.own_mask);
        A = (bit<WIDTH>)fold_.bias * LANE(ONE_32);
    }

    @hidden
    action remove() {
        ADD(32)
    }

#define FOLD(c) \
    kept.read(A, fold_.place ## c); \
    A = SHIFTED(A, fold_.shift ## c, fold_.mask ## c); \
    ADD(32)
    @hidden action fold0() { FOLD(0) }
    @hidden action fold1() { FOLD(1) }
    @hidden action fold2() { FOLD(2) }
    @hidden action fold3() { FOLD(3) }
    @hidden action fold4() { FOLD(4) }
    @hidden action fold5() { FOLD(5) }
    @hidden action fold6() { FOLD(6) }
    @hidden action fold7() { FOLD(7) }
#undef FOLD

    @hidden
    action end() {
        SWAP_32(block.value)
        held.write(m.place, block.value);
    }
#endif

    @hidden
    table work {
        key = { m.work: exact; }
        actions = {
            store; load; do_and; do_or; do_xor;
#if WIDTH >= 32
            store_swap32; sum32; last32; keep; begin;
#endif
#if WIDTH >= 64
            store_swap64; sum64; last64;
#endif
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            DO_STORE: store();
            DO_LOAD: load();
            DO_AND: do_and();
            DO_OR: do_or();
            DO_XOR: do_xor();
#if WIDTH >= 32
            DO_SWAP32: store_swap32();
            DO_SUM32: sum32();
            DO_LAST32: last32();
            DO_KEEP: keep();
            DO_FOLD: begin();
#endif
#if WIDTH >= 64
            DO_SWAP64: store_swap64();
            DO_SUM64: sum64();
            DO_LAST64: last64();
#endif
        }
    }

    @hidden
    table map {
        key = { m.map: exact; }
        actions = {
            minimal_F16; maximal_F16; minimal_BF16; maximal_BF16;
#if WIDTH >= 32
            swap32; signed32; truth32; minimal_F32; maximal_F32;
#endif
#if WIDTH >= 64
            swap64; signed64; truth64; minimal_F64; maximal_F64;
#endif
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            MAP_MIN_F16: minimal_F16();
            MAP_MIN_BF16: minimal_BF16();
            MAP_MAX_F16: maximal_F16();
            MAP_MAX_BF16: maximal_BF16();
#if WIDTH >= 32
            MAP_SWAP32: swap32();
            MAP_SIGNED32: signed32();
            MAP_TRUTH32: truth32();
            MAP_MIN_F32: minimal_F32();
            MAP_MAX_F32: maximal_F32();
#endif
#if WIDTH >= 64
            MAP_SWAP64: swap64();
            MAP_SIGNED64: signed64();
            MAP_TRUTH64: truth64();
            MAP_MIN_F64: minimal_F64();
            MAP_MAX_F64: maximal_F64();
#endif
        }
    }

    @hidden
    table fold {
        key = { m.fold: exact; }
        actions = {
            first; fold_and; fold_or; fold_xor; min16; max16;
#if WIDTH >= 32
            min32; max32;
#endif
#if WIDTH >= 64
            min64; max64;
#endif
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            FOLD_FIRST: first();
            FOLD_AND: fold_and();
            FOLD_OR: fold_or();
            FOLD_XOR: fold_xor();
            FOLD_MIN16: min16();
            FOLD_MAX16: max16();
#if WIDTH >= 32
            FOLD_MIN32: min32();
            FOLD_MAX32: max32();
#endif
#if WIDTH >= 64
            FOLD_MIN64: min64();
            FOLD_MAX64: max64();
#endif
        }
    }

    @hidden
    table unmap {
        key = { m.unmap: exact; }
        actions = {
            number_F16; number_BF16;
#if WIDTH >= 32
            back32; back_signed32; number_F32;
#endif
#if WIDTH >= 64
            back64; back_signed64; number_F64;
#endif
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            UNMAP_F16: number_F16();
            UNMAP_BF16: number_BF16();
#if WIDTH >= 32
            UNMAP_SWAP32: back32();
            UNMAP_SIGNED32: back_signed32();
            UNMAP_F32: number_F32();
#endif
#if WIDTH >= 64
            UNMAP_SWAP64: back64();
            UNMAP_SIGNED64: back_signed64();
            UNMAP_F64: number_F64();
#endif
        }
    }

    apply {
        if (block.isValid()) {
            if (!work.apply().hit) {
                map.apply();
                fold.apply();
                unmap.apply();
            }
#if WIDTH >= 32
            else if (m.work == DO_FOLD) {
                remove();
                if (fold_.others[0:0] == 1) {
                    fold0();
                }
                if (fold_.others[1:1] == 1) {
                    fold1();
                }
                if (fold_.others[7:2] != 0) {
                    if (fold_.others[2:2] == 1) {
                        fold2();
                    }
                    if (fold_.others[3:3] == 1) {
                        fold3();
                    }
                    if (fold_.others[4:4] == 1) {
                        fold4();
                    }
                    if (fold_.others[5:5] == 1) {
                        fold5();
                    }
                    if (fold_.others[6:6] == 1) {
                        fold6();
                    }
                    if (fold_.others[7:7] == 1) {
                        fold7();
                    }
                }
                end();
            }
#endif
        }
    }
}
