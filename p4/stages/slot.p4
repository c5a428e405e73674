// The slot of an admitted packet: what it holds, and what becomes of it.

control Slot(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    Body() body;
    Idle() idle;
    Grow() grow;
    Contribution() contribution;
    Probe() probe;
    Answer() answer;
    Told() told;
    Errors() errors;
    bit<1> fit;

    action recall() {
        m.place = m.slot_base + (hdr.chunk.number & m.slot_mask);
        m.served = m.serial ++ hdr.chunk.number;
        served.read(m.slot.served, m.place);
        states.read(m.slot.state, m.place);
        arrived.read(m.slot.arrived, m.place);
        wants.read(m.slot.wants, m.place);
    }

    // How it stands to a chunk that is not its own.
    action compare() {
        m.ahead = hdr.chunk.number - m.slot.served[31:0];
    }

    action vacate() {
        m.slot.state = VACANT;
        m.slot.arrived = 0;
        m.slot.wants = 0;
    }

    action recall_repairs() {
        bit<32> word;
        repairs.read(word, m.place);
        m.slot.source = word[25:25];
        m.slot.lost = word[24:24];
        m.slot.unanswered = word[23:16];
        m.slot.length = word[15:0];
    }

    action recall_signature() {
        signatures.read(m.slot.signature, m.place);
    }

    apply {
        fit = 1;
        if (hdr.chunk.type == ERROR) {
            body.apply(hdr, m, fit);
        }
        if (hdr.chunk.type == CONTRIBUTION && m.size > (bit<32>)m.chunk_bytes) {
            m.outcome = DROP_SIZE;
        } else if (fit == 0) {
            m.outcome = DROP_BODY;
        } else if (hdr.chunk.type == PROBE && hdr.chunk.flags & IDLE != 0) {
            idle.apply(hdr, m, std);
        } else {
            recall();
            if (m.slot.served != m.served) {
                compare();
                if (m.slot.served[79:32] > m.serial || m.slot.served[79:32] == m.serial && m.ahead[31:31] == 1) {
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
                if (m.slot.state == GIVEN) {
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
