// The slot of an admitted packet: its state and the transition.

control Slot(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    Body() body;
    Idle() idle;
    Grow() grow;
    Contribution() contribution;
    Probe() probe;
    Answer() answer;
    Told() told;
    Errors() errors;

    // Fields that are not read are as in a new slot.
    action recall() {
        hdr.slot.source = 0;
        hdr.slot.lost = 0;
        hdr.slot.unanswered = 0;
        hdr.slot.length = 0;
        served.read(hdr.slot.served, m.place);
        states.read(hdr.slot.state, m.place);
        arrived.read(hdr.slot.arrived, m.place);
        wants.read(hdr.slot.wants, m.place);
    }

    // Its relation to a chunk that it does not serve.
    action compare() {
        m.ahead = hdr.chunk.number - hdr.slot.served[31:0];
    }

    action vacate() {
        hdr.slot.state = VACANT;
        hdr.slot.arrived = 0;
        hdr.slot.wants = 0;
    }

    action recall_repairs() {
        bit<32> word;
        repairs.read(word, m.place);
        hdr.slot.source = (bit<8>)word[25:25];
        hdr.slot.lost = (bit<8>)word[24:24];
        hdr.slot.unanswered = word[23:16];
        hdr.slot.length = word[15:0];
    }

    action recall_signature() {
        signatures.read(hdr.slot.signature, m.place);
    }

    apply {
        if (hdr.chunk.type == ERROR) {
            body.apply(hdr, m);
        }
        if (hdr.chunk.type == CONTRIBUTION && m.size > (bit<32>)hdr.tree.chunk_bytes) {
            m.outcome = DROP_SIZE;
        } else if (m.unsound == 1) {
            m.outcome = DROP_BODY;
        } else if (hdr.chunk.type == PROBE && hdr.chunk.flags & IDLE != 0) {
            idle.apply(hdr, m, std);
        } else {
            recall();
            if (hdr.slot.served != m.served) {
                compare();
                if (hdr.slot.served[79:32] > hdr.tree.serial || hdr.slot.served[79:32] == hdr.tree.serial && m.ahead[31:31] == 1) {
                    m.outcome = DROP_LATE;
                } else {
                    vacate();
                }
            } else if (hdr.chunk.type != CONTRIBUTION || hdr.claim.collective == BROADCAST) {
                recall_repairs();
                if (hdr.chunk.type != CONTRIBUTION) {
                    recall_signature();
                }
                grow.apply(hdr, m);
            }
            if (m.outcome == 0) {
                if (hdr.slot.state == GIVEN) {
                    m.outcome = HANDED;
                } else if (hdr.chunk.type == CONTRIBUTION) {
                    contribution.apply(hdr, m, std);
                } else if (hdr.chunk.type == PROBE) {
                    probe.apply(hdr, m, std);
                } else if (hdr.chunk.type == ERROR) {
                    told.apply(hdr, m);
                } else {
                    answer.apply(hdr, m, std);
                }
                if (m.spread == 1 || m.outcome == ASKED_ERROR) {
                    errors.apply(hdr, m, std);
                }
            }
        }
    }
}
