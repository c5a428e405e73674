// Probes of children, which never take a slot over.

control Probe(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    action result() {
        m.outcome = ASKED_RESULT;
        BECOME_SLOT(RESULT)
        TO_CHILD
    }

    action load() {
        LOAD
    }

    action failure() {
        m.outcome = ASKED_ERROR;
        BECOME(ERROR)
        TO_CHILD
    }

    action want() {
        m.outcome = ASKED_WANT;
        BECOME(WANT)
        TO_CHILD
    }

    action heard() {
        m.outcome = ASKED_HEARD;
        BECOME(HEARD)
        TO_CHILD
    }

    action lost() {
        m.outcome = ASKED_LOST;
        BECOME(LOST)
        TO_CHILD
    }

    // The copy for the parent becomes a probe in egress.
    action relay() {
        m.outcome = m.outcome == ASKED_LOST ? RELAYED_LOST : RELAYED_HEARD;
        m.up = 1;
        m.slot.unanswered = m.slot.unanswered < m.probes ? m.slot.unanswered + 1 : m.slot.unanswered;
        repairs.write(m.place, REPAIRS);
        TO_GROUP(GROUP_PAIR)
    }

    apply {
        if (m.slot.state == FAILED) {
            failure();
        } else if (m.slot.state == FINISHED) {
            result();
            if (m.slot.wants & m.one != 0) {
                load();
            }
        } else if (m.slot.arrived & m.one == 0) {
            want();
        } else {
            if (m.slot.state == COMPLETE && (m.slot.lost == 1 || m.probes != 0 && m.slot.unanswered >= m.probes)) {
                lost();
            } else {
                heard();
            }
            if (m.slot.state == COMPLETE && m.child == 0) {
                relay();
            }
        }
    }
}

// Idle probes ask for no chunk.
control Idle(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    action pass_on() {
        m.outcome = IDLED_ON;
        BECOME(PROBE)
        hdr.chunk.flags = IDLE;
        hdr.chunk.number = 0;
        TO_PARENT
    }

    apply {
        m.outcome = IDLED;
        if (m.child == 0 && m.root == 0) {
            pass_on();
        }
    }
}
