// Whether a packet is valid: the faults of docs/protocol.md, in their order.

// Sound marks an invalid signature as unsound (malformed), and sets the
// operations on values for a valid one.
control Sound(in bit<32> elements, in bit<16> chunk_elements, in bit<4> collective, in bit<4> function,
              in rank_t root, in bit<8> element, inout metadata m) {
    action unsound() {
        m.unsound = 1;
    }

    // The blocks' operations for the first contribution, for more, for the last,
    // and for a single one.
    @hidden
    action pair(bit<4> shift, bit<8> first, bit<8> more, bit<8> last, bit<8> only) {
        m.shift = shift;
        m.pair_first = first;
        m.pair_more = more;
        m.pair_last = last;
        m.pair_only = only;
    }

    @hidden
    action steps(bit<4> shift, bit<8> map, bit<8> fold, bit<8> unmap) {
        m.shift = shift;
        m.pair_first = DO_STEPS;
        m.pair_more = DO_STEPS;
        m.pair_last = DO_STEPS;
        m.pair_only = DO_STEPS;
        m.map = map;
        m.pair_fold = fold;
        m.pair_unmap = unmap;
    }

    @hidden
    action agent(bit<4> shift) {
        m.shift = shift;
        m.pair_first = DO_AGENT;
    }

    // Nothing is reduced: barriers, and broadcasts of every type.
    @hidden
    action none(bit<4> shift) {
        m.shift = shift;
    }

    // Functions and types as docs/functions.md defines them. Those without an
    // exact result in every order, or too wide for a lane, are for the agent.
    @hidden
    table pairs {
        key = {
            function: exact;
            element: exact;
        }
        actions = { none; pair; steps; agent; NoAction; }
        const default_action = NoAction;
        const entries = {
            // none
            (0, 0): none(0);
            (0, 1): none(2);
            (0, 2): none(3);
            (0, 3): none(2);
            (0, 4): none(3);
            (0, 5): none(2);
            (0, 6): none(3);
            (0, 7): none(1);
            (0, 8): none(1);
            // sum
            (1, 1): pair(2, DO_SWAP32, DO_SUM32, DO_LAST32, DO_STORE);
            (1, 2): pair(3, DO_SWAP64, DO_SUM64, DO_LAST64, DO_STORE);
            (1, 3): pair(2, DO_SWAP32, DO_SUM32, DO_LAST32, DO_STORE);
            (1, 4): pair(3, DO_SWAP64, DO_SUM64, DO_LAST64, DO_STORE);
            (1, 5): agent(2);
            (1, 6): agent(3);
            (1, 7): agent(1);
            (1, 8): agent(1);
            (1, 9): pair(2, DO_KEEP, DO_KEEP, DO_FOLD, DO_FOLD);
            // product
            (2, 1): agent(2);
            (2, 2): agent(3);
            (2, 3): agent(2);
            (2, 4): agent(3);
            (2, 5): agent(2);
            (2, 6): agent(3);
            (2, 7): agent(1);
            (2, 8): agent(1);
            // min
            (3, 1): steps(2, MAP_SIGNED32, FOLD_MIN32, UNMAP_SIGNED32);
            (3, 2): steps(3, MAP_SIGNED64, FOLD_MIN64, UNMAP_SIGNED64);
            (3, 3): steps(2, MAP_SWAP32, FOLD_MIN32, UNMAP_SWAP32);
            (3, 4): steps(3, MAP_SWAP64, FOLD_MIN64, UNMAP_SWAP64);
            (3, 5): steps(2, MAP_MIN_F32, FOLD_MIN32, UNMAP_F32);
            (3, 6): steps(3, MAP_MIN_F64, FOLD_MIN64, UNMAP_F64);
            (3, 7): steps(1, MAP_MIN_F16, FOLD_MIN16, UNMAP_F16);
            (3, 8): steps(1, MAP_MIN_BF16, FOLD_MIN16, UNMAP_BF16);
            // max
            (4, 1): steps(2, MAP_SIGNED32, FOLD_MAX32, UNMAP_SIGNED32);
            (4, 2): steps(3, MAP_SIGNED64, FOLD_MAX64, UNMAP_SIGNED64);
            (4, 3): steps(2, MAP_SWAP32, FOLD_MAX32, UNMAP_SWAP32);
            (4, 4): steps(3, MAP_SWAP64, FOLD_MAX64, UNMAP_SWAP64);
            (4, 5): steps(2, MAP_MAX_F32, FOLD_MAX32, UNMAP_F32);
            (4, 6): steps(3, MAP_MAX_F64, FOLD_MAX64, UNMAP_F64);
            (4, 7): steps(1, MAP_MAX_F16, FOLD_MAX16, UNMAP_F16);
            (4, 8): steps(1, MAP_MAX_BF16, FOLD_MAX16, UNMAP_BF16);
            // band
            (5, 1): pair(2, DO_STORE, DO_AND, DO_AND, DO_STORE);
            (5, 2): pair(3, DO_STORE, DO_AND, DO_AND, DO_STORE);
            (5, 3): pair(2, DO_STORE, DO_AND, DO_AND, DO_STORE);
            (5, 4): pair(3, DO_STORE, DO_AND, DO_AND, DO_STORE);
            // bor
            (6, 1): pair(2, DO_STORE, DO_OR, DO_OR, DO_STORE);
            (6, 2): pair(3, DO_STORE, DO_OR, DO_OR, DO_STORE);
            (6, 3): pair(2, DO_STORE, DO_OR, DO_OR, DO_STORE);
            (6, 4): pair(3, DO_STORE, DO_OR, DO_OR, DO_STORE);
            // bxor
            (7, 1): pair(2, DO_STORE, DO_XOR, DO_XOR, DO_STORE);
            (7, 2): pair(3, DO_STORE, DO_XOR, DO_XOR, DO_STORE);
            (7, 3): pair(2, DO_STORE, DO_XOR, DO_XOR, DO_STORE);
            (7, 4): pair(3, DO_STORE, DO_XOR, DO_XOR, DO_STORE);
            // land
            (8, 1): steps(2, MAP_TRUTH32, FOLD_AND, UNMAP_NOT);
            (8, 2): steps(3, MAP_TRUTH64, FOLD_AND, UNMAP_NOT);
            (8, 3): steps(2, MAP_TRUTH32, FOLD_AND, UNMAP_NOT);
            (8, 4): steps(3, MAP_TRUTH64, FOLD_AND, UNMAP_NOT);
            // lor
            (9, 1): steps(2, MAP_TRUTH32, FOLD_OR, UNMAP_NOT);
            (9, 2): steps(3, MAP_TRUTH64, FOLD_OR, UNMAP_NOT);
            (9, 3): steps(2, MAP_TRUTH32, FOLD_OR, UNMAP_NOT);
            (9, 4): steps(3, MAP_TRUTH64, FOLD_OR, UNMAP_NOT);
            // lxor
            (10, 1): steps(2, MAP_TRUTH32, FOLD_XOR, UNMAP_NOT);
            (10, 2): steps(3, MAP_TRUTH64, FOLD_XOR, UNMAP_NOT);
            (10, 3): steps(2, MAP_TRUTH32, FOLD_XOR, UNMAP_NOT);
            (10, 4): steps(3, MAP_TRUTH64, FOLD_XOR, UNMAP_NOT);
            // minloc
            (11, 1): agent(4);
            (11, 2): agent(4);
            (11, 3): agent(4);
            (11, 4): agent(4);
            (11, 5): agent(4);
            (11, 6): agent(4);
            (11, 7): agent(4);
            (11, 8): agent(4);
            // maxloc
            (12, 1): agent(4);
            (12, 2): agent(4);
            (12, 3): agent(4);
            (12, 4): agent(4);
            (12, 5): agent(4);
            (12, 6): agent(4);
            (12, 7): agent(4);
            (12, 8): agent(4);
        }
    }

    apply {
        if (!pairs.apply().hit) {
            unsound();
        } else if ((bit<32>)chunk_elements > elements || chunk_elements == 0 && elements != 0) {
            unsound();
        } else if (collective == ALLREDUCE) {
            if (function == 0 || root != 0) {
                unsound();
            }
        } else if (!(function != 0 && collective == REDUCE ||
                     function == 0 && (collective == BROADCAST && element != 0 ||
                                       collective == BARRIER && element == 0 && elements == 0 && root == 0))) {
            unsound();
        }
    }
}

control Soundness(inout headers hdr, inout metadata m) {
    Sound() signature;

    action judge_flags() {
        bit<8> allowed = hdr.chunk.type == CONTRIBUTION ? (hdr.claim.collective == BROADCAST ? SOURCE | SINK : SINK)
            : (hdr.chunk.type == RESULT ? SINK : (hdr.chunk.type == PROBE ? IDLE : 0));
        m.forbidden = hdr.chunk.flags & ~allowed;
    }

    action measure() {
        m.size = (bit<32>)hdr.claim.chunk_elements << m.shift;
    }

    action wrong_length() {
        m.outcome = FAULT_LENGTH;
    }

    apply {
        if (!hdr.chunk.isValid()) {
            m.outcome = FAULT_TRUNCATED;
        } else if (hdr.chunk.version != VERSION) {
            m.outcome = FAULT_VERSION;
        } else if (hdr.chunk.type == 0 || hdr.chunk.type > ERROR) {
            m.outcome = FAULT_TYPE;
        } else {
            // The common case needs no further check.
            if (hdr.chunk.type > RESULT || hdr.chunk.flags & ~SINK != 0) {
                judge_flags();
            }
            if (m.forbidden != 0 || hdr.chunk.reserved != 0) {
                m.outcome = FAULT_FLAGS;
            } else if (hdr.chunk.exponent != 0 && (hdr.chunk.type > RESULT || hdr.claim.element != BLOCK32)) {
                m.outcome = FAULT_EXPONENT;
            } else {
                if (hdr.chunk.type <= RESULT) {
                    signature.apply(hdr.claim.elements, hdr.claim.chunk_elements, hdr.claim.collective,
                        hdr.claim.function, hdr.claim.root, hdr.claim.element, m);
                    measure();
                }
                if (m.unsound == 1) {
                    m.outcome = FAULT_SIGNATURE;
                } else if (hdr.chunk.type == CONTRIBUTION && (hdr.claim.collective != BROADCAST || hdr.chunk.flags & SOURCE != 0) ||
                           hdr.chunk.type == RESULT && hdr.chunk.flags & SINK != 0) {
                    if (m.size != (bit<32>)m.length) {
                        wrong_length();
                    }
                } else if (m.length != (hdr.chunk.type == ERROR ? ERROR_BYTES : 0)) {
                    wrong_length();
                }
            }
        }
    }
}
