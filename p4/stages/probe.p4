// Probes of children, which never take over a slot.

control Probe(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    Exponent() exponent;

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
        hdr.slot.unanswered = hdr.slot.unanswered < hdr.tree.probes ? hdr.slot.unanswered + 1 : hdr.slot.unanswered;
        repairs.write(m.place, REPAIRS);
        TO_GROUP(GROUP_PAIR)
    }

    apply {
        if (hdr.slot.state == FAILED) {
            failure();
        } else if (hdr.slot.state == FINISHED) {
            result();
            exponent.apply(hdr, m);
            if (hdr.slot.wants & hdr.tree.one != 0) {
                load();
            }
        } else if (hdr.slot.arrived & hdr.tree.one == 0) {
            want();
        } else {
            if (hdr.slot.state == COMPLETE && (hdr.slot.lost == 1 || hdr.tree.probes != 0 && hdr.slot.unanswered >= hdr.tree.probes)) {
                lost();
            } else {
                heard();
            }
            if (hdr.slot.state == COMPLETE && hdr.tree.child == 0) {
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
        if (hdr.tree.child == 0 && hdr.tree.root == 0) {
            pass_on();
        }
    }
}
