// Which sender may send packets of which epoch: the reasons of docs/protocol.md,
// in their order. A packet that fails here has no effect.

control Admission(inout headers hdr, inout metadata m) {
    // The largest serial number of a tree's epochs with an admitted packet:
    // it ends all earlier ones.
    register<serial_t>(TREES) begun;

    action epoch(bit<16> index, serial_t serial, bit<32> slot_base, bit<32> slot_mask,
                 children_t everyone, bit<8> root, bit<16> chunk_bytes, bit<8> probes, bit<16> own, rank_t lowest,
                 bit<16> parent_port) {
        m.epoch = index;
        hdr.tree.serial = serial;
        hdr.tree.slot_base = slot_base;
        hdr.tree.slot_mask = slot_mask;
        hdr.tree.everyone = everyone;
        hdr.tree.root = root;
        hdr.tree.chunk_bytes = chunk_bytes;
        hdr.tree.probes = probes;
        hdr.tree.own = own;
        hdr.tree.lowest = lowest;
        hdr.tree.parent_port = parent_port;
    }

    table epochs {
        key = {
            m.tree: exact @name("tree");
            hdr.chunk.epoch: exact @name("number");
        }
        actions = { epoch; @defaultonly NoAction; }
        const default_action = NoAction;
        size = EPOCHS;
    }

    // The lowest rank beneath a child is for readers of the entries.
    @noWarn("unused")
    action child(bit<16> index, children_t one, bit<16> port, rank_t lowest, bit<48> cookie) {
        m.sender = CHILD;
        hdr.tree.cookie = cookie;
        hdr.tree.child = index;
        hdr.tree.one = one;
        hdr.tree.child_port = port;
    }

    action parent(bit<48> cookie) {
        m.sender = OWN_PARENT;
        hdr.tree.cookie = cookie;
    }

    table neighbours {
        key = {
            m.epoch: exact @name("epoch");
            m.port: exact @name("port");
            hdr.ipv4.source: exact @name("address");
            hdr.udp.source: exact @name("udp");
        }
        actions = { child; parent; @defaultonly NoAction; }
        const default_action = NoAction;
        size = EPOCHS * (CHILDREN + 1);
    }

    action end_those_before() {
        begun.write((bit<32>)m.tree, hdr.tree.serial);
    }

    // And the place of the slot.
    action admit() {
        m.admitted = 1;
        m.place = hdr.tree.slot_base + (hdr.chunk.number & hdr.tree.slot_mask);
        m.served = hdr.tree.serial ++ hdr.chunk.number;
    }

    action recall() {
        begun.read(hdr.tree.begun, (bit<32>)m.tree);
    }

    apply {
        if (hdr.chunk.group != hdr.tree.group) {
            m.outcome = DROP_GROUP;
        } else if (hdr.chunk.epoch > hdr.tree.newest) {
            m.outcome = DROP_EPOCH;
        } else if (!epochs.apply().hit) {
            m.outcome = DROP_STALE;
        } else {
            recall();
            if (hdr.tree.serial < hdr.tree.begun) {
                m.outcome = DROP_STALE;
            } else {
                neighbours.apply();
                // A packet from a child has the child's index; any other must
                // come from the parent, and have this switch's index.
                if (hdr.chunk.type == CONTRIBUTION || hdr.chunk.type == PROBE ||
                    hdr.chunk.type == ERROR && m.sender != OWN_PARENT) {
                    if (m.sender != CHILD) {
                        m.outcome = DROP_ADDRESS;
                    } else if (hdr.chunk.child != hdr.tree.child) {
                        m.outcome = DROP_CHILD;
                    }
                } else if (m.sender != OWN_PARENT) {
                    m.outcome = DROP_ADDRESS;
                } else if (hdr.chunk.child != hdr.tree.own) {
                    m.outcome = DROP_CHILD;
                }
                if (m.outcome == 0) {
                    if (hdr.chunk.cookie != hdr.tree.cookie) {
                        m.outcome = DROP_COOKIE;
                    } else {
                        if (hdr.tree.serial > hdr.tree.begun) {
                            end_those_before();
                        }
                        admit();
                    }
                }
            }
        }
    }
}
