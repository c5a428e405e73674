// Errors: those of neighbours, and the stored fields of all.

// Told accepts an error from a neighbour.
control Told(inout headers hdr, inout metadata m) {
    action take() {
        m.outcome = TOLD_ERROR;
        m.teller = m.sender == CHILD ? hdr.tree.child + 1 : PARENT;
        served.write(m.place, m.served);
        FAIL
    }

    apply {
        if (hdr.slot.state == FINISHED || hdr.slot.state == FAILED) {
            m.outcome = DROP_DUPLICATE;
        } else {
            take();
        }
    }
}

// Body marks an invalid payload of an error as unsound (malformed).
control Body(inout headers hdr, inout metadata m) {
    Sound() first;
    Sound() second;

    action unsound() {
        m.unsound = 1;
    }

    apply {
        if (hdr.disagreement.kind < MISMATCH || hdr.disagreement.kind > NO_SOURCE || hdr.disagreement.zero != 0) {
            unsound();
        } else {
            first.apply(hdr.disagreement.first[127:96], hdr.disagreement.first[79:64], hdr.disagreement.first[63:60],
                hdr.disagreement.first[59:56], hdr.disagreement.first[55:32], hdr.disagreement.first[31:24], m);
            if (m.unsound == 0) {
                second.apply(hdr.disagreement.second[127:96], hdr.disagreement.second[79:64], hdr.disagreement.second[63:60],
                    hdr.disagreement.second[59:56], hdr.disagreement.second[55:32], hdr.disagreement.second[31:24], m);
            }
        }
    }
}

// Errors stores the error of a failed slot, and sends it.
control Errors(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    register<bit<264>>(SLOTS) errors;

    action spread() {
        errors.write(m.place, hdr.disagreement.kind ++ hdr.disagreement.first ++ hdr.disagreement.second);
        BECOME(ERROR)
        m.up = hdr.tree.root == 0 && m.teller != PARENT ? 1w1 : 1w0;
        TO_GROUP((hdr.tree.root == 1 ? (bit<16>)GROUP_CHILDREN : GROUP_ALL))
    }

    action repeat() {
        bit<264> word;
        errors.read(word, m.place);
        hdr.disagreement.setValid();
        hdr.disagreement.kind = word[263:256];
        hdr.disagreement.zero = 0;
        hdr.disagreement.first = word[255:128];
        hdr.disagreement.second = word[127:0];
    }

    apply {
        if (m.spread == 1) {
            spread();
        } else {
            repeat();
        }
    }
}
