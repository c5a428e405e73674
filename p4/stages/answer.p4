// What comes from the parent, errors aside: results and answers to probes. Only
// a complete slot takes them.

control Answer(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    action finish() {
        m.outcome = RESULT_TAKEN;
        TURN_TO(FINISHED)
        m.slot.length = m.length;
        repairs.write(m.place, REPAIRS);
        m.work = DO_STORE;
        TO_GROUP(GROUP_CHILDREN)
    }

    action note() {
        m.outcome = NOTED;
        m.slot.unanswered = 0;
        m.slot.lost = hdr.chunk.type == LOST ? 1w1 : 1w0;
        repairs.write(m.place, REPAIRS);
    }

    action resend() {
        m.outcome = RESENT;
        hdr.chunk.flags = FLAGS_OF_PARTIAL;
        BECOME_SLOT(CONTRIBUTION)
        LOAD
        TO_PARENT
    }

    apply {
        if (hdr.chunk.type == RESULT && (m.slot.state == FINISHED || m.slot.state == FAILED)) {
            m.outcome = DROP_DUPLICATE;
        } else if (m.slot.state != COMPLETE) {
            m.outcome = DROP_UNASKED;
        } else if (hdr.chunk.type == RESULT) {
            if (m.signature != m.slot.signature || hdr.chunk.flags & SINK != 0 && m.slot.wants == 0 ||
                hdr.chunk.flags & SINK == 0 && m.slot.wants != 0) {
                m.outcome = DROP_UNFIT;
            } else {
                finish();
            }
        } else {
            note();
            if (hdr.chunk.type == WANT) {
                resend();
            }
        }
    }
}
