// Packets from the parent, except errors: results and answers to probes. Only a
// complete slot accepts them.

control Answer(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    Exponent() exponent;

    action finish() {
        m.outcome = RESULT_TAKEN;
        TURN_TO(FINISHED)
        hdr.slot.length = m.length;
        repairs.write(m.place, REPAIRS);
        m.work = DO_STORE;
        TO_GROUP(GROUP_CHILDREN)
    }

    // For a switch that is not its parent's lowest child, lost means heard.
    action note() {
        m.outcome = NOTED;
        hdr.slot.unanswered = 0;
        hdr.slot.lost = hdr.chunk.type == LOST && hdr.tree.own == 0 ? 8w1 : 8w0;
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
        if (hdr.chunk.type == RESULT && (hdr.slot.state == FINISHED || hdr.slot.state == FAILED)) {
            m.outcome = DROP_DUPLICATE;
        } else if (hdr.slot.state != COMPLETE) {
            m.outcome = DROP_UNASKED;
        } else if (hdr.chunk.type == RESULT) {
            if (m.signature != hdr.slot.signature || hdr.chunk.flags & SINK != 0 && hdr.slot.wants == 0 ||
                hdr.chunk.flags & SINK == 0 && hdr.slot.wants != 0) {
                m.outcome = DROP_UNFIT;
            } else {
                finish();
                exponent.apply(hdr, m);
            }
        } else {
            note();
            if (hdr.chunk.type == WANT) {
                resend();
                exponent.apply(hdr, m);
            }
        }
    }
}
