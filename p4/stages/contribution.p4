// Contributions. Functions that are exact in every order reduce on arrival.

control Contribution(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    Align() align;

    action give() {
        m.outcome = HANDED;
        CLAIM(GIVEN)
    }

    action open() {
        CLAIM(OPEN)
        hdr.slot.signature = m.signature;
        signatures.write(m.place, m.signature);
        ranks.write(m.place, hdr.claim.lowest ++ 24w0);
        m.pair_more = m.pair_first;
        m.pair_last = m.pair_only;
        m.pair_fold = FOLD_FIRST;
    }

    action recall() {
        signatures.read(hdr.slot.signature, m.place);
    }

    action recall_ranks() {
        bit<48> both;
        ranks.read(both, m.place);
        hdr.slot.first = both[47:24];
        hdr.slot.origin = both[23:0];
    }

    action mismatch() {
        m.outcome = DISAGREED;
        DISAGREE(MISMATCH, hdr.slot.first, hdr.claim.lowest)
    }

    action two_sources() {
        m.outcome = DISAGREED;
        DISAGREE(TWO_SOURCES, hdr.slot.origin, hdr.claim.lowest)
    }

    action no_source() {
        m.outcome = TAKEN_NO_SOURCE;
        DISAGREE(NO_SOURCE, hdr.tree.lowest, hdr.claim.root)
    }

    action hold() {
        m.outcome = TAKEN;
        hdr.slot.arrived = hdr.slot.arrived | hdr.tree.one;
        arrived.write(m.place, hdr.slot.arrived);
        m.work = m.pair_more;
        m.fold = m.pair_fold;
    }

    action hold_sink() {
        hdr.slot.wants = hdr.slot.wants | hdr.tree.one;
        wants.write(m.place, hdr.slot.wants);
    }

    action hold_source() {
        hdr.slot.source = 1;
        hdr.slot.length = m.length;
        repairs.write(m.place, REPAIRS);
        ranks.write(m.place, hdr.slot.first ++ hdr.claim.lowest);
        m.work = DO_STORE;
    }

    // The held value and the arrived one form the value.
    action close_reduction() {
        hdr.slot.length = m.length;
        repairs.write(m.place, REPAIRS);
        m.work = m.pair_last;
        m.unmap = m.pair_unmap;
    }

    // The value arrived before, or never.
    action close_copy() {
        LOAD
    }

    action finish() {
        m.outcome = TAKEN_RESULT;
        TURN_TO(FINISHED)
        hdr.chunk.type = RESULT;
        TO_GROUP(GROUP_CHILDREN)
    }

    action complete() {
        m.outcome = TAKEN_PARTIAL;
        TURN_TO(COMPLETE)
        hdr.chunk.flags = FLAGS_OF_PARTIAL;
        TO_PARENT
    }

    apply {
        if (hdr.slot.state == FAILED || hdr.slot.arrived & hdr.tree.one != 0) {
            m.outcome = DROP_DUPLICATE;
        } else if (hdr.slot.state == VACANT && (m.pair_first == DO_AGENT && m.length != 0 ||
                   hdr.claim.element == BLOCK32 && (hdr.tree.everyone >> BLOCK_CHILDREN != 0 || m.place >= BLOCK_SLOTS))) {
            give();
        } else {
            if (hdr.slot.state == VACANT) {
                open();
            } else {
                recall();
            }
            if (hdr.slot.signature != m.signature) {
                recall_ranks();
                mismatch();
            } else if (hdr.chunk.flags & SOURCE != 0 && hdr.slot.source == 1) {
                recall_ranks();
                two_sources();
            } else {
                hold();
                if (hdr.chunk.flags & SINK != 0) {
                    hold_sink();
                }
                if (hdr.chunk.flags & SOURCE != 0) {
                    recall_ranks();
                    hold_source();
                }
                if (hdr.claim.element == BLOCK32) {
                    align.apply(hdr, m);
                }
                if (hdr.slot.arrived == hdr.tree.everyone) {
                    if (hdr.claim.collective != BROADCAST) {
                        close_reduction();
                    } else if (hdr.chunk.flags & SOURCE == 0) {
                        close_copy();
                    }
                    if (hdr.claim.collective == BROADCAST && hdr.slot.source == 0 && hdr.tree.root == 1) {
                        no_source();
                    } else if (hdr.tree.root == 1) {
                        finish();
                    } else {
                        complete();
                    }
                }
            }
        }
    }
}
