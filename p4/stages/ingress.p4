// Ingress: one thread on bmv2, so that it may keep state.

control Inbound(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    counter(DISCARDS, CounterType.packets) discards;

    Unwind() unwind;
    Forward() forward;
    Soundness() soundness;
    Admission() admission;
    Slot() slot;
    Round() round;
    Bare() bare;
    Occupy() occupy;
    Blocks() blocks;
    Tally() tally;

    action tree(bit<16> index, bit<32> group, bit<32> newest) {
        m.tree = index;
        hdr.tree.group = group;
        hdr.tree.newest = newest;
    }

    table trees {
        key = { hdr.udp.destination: exact @name("udp"); }
        actions = { tree; @defaultonly NoAction; }
        const default_action = NoAction;
        size = TREES;
    }

    action discard(bit<8> reason) {
        mark_to_drop(std);
        discards.count((bit<32>)reason);
    }

    action leave() {
        std.egress_spec = (bit<9>)hdr.packet_out.port;
    }

    // Metadata for egress.
    action pass_on() {
        m.lowest = hdr.tree.lowest;
        m.wants = hdr.slot.wants;
        m.value_bytes = hdr.slot.length;
    }

    action hand_over() {
        std.egress_spec = CPU_PORT;
    }

    apply {
        if (std.parser_error != error.NoError) {
            discard(DISCARD_PARSER);
        } else if (std.checksum_error == 1) {
            discard(DISCARD_CHECKSUM);
        } else if (hdr.packet_out.isValid() && hdr.packet_out.port != 0) {
            leave();
        } else if (!hdr.ipv4.isValid()) {
            if (std.ingress_port == LOOP_IN_PORT && hdr.ethernet.type == CHECK_TYPE) {
                hand_over();
            } else if (hdr.ethernet.type == ETHERTYPE_ARP || hdr.ethernet.type == ETHERTYPE_LLDP) {
                mark_to_drop(std);  // the agent hears it beside the pipeline
            } else {
                discard(DISCARD_PROTOCOL);
            }
        } else {
            unwind.apply(hdr, m, std);
            m.addressed = (bit<1>)(hdr.packet_out.isValid());
            forward.apply(hdr, m, std);
            if (m.outcome != 0) {
                discard(m.outcome);
            } else if (m.local == 0) {
                if (hdr.ipv4.ttl == 0 || hdr.ipv4.ttl == 255) {  // it was 1 or 0
                    discard(DISCARD_TTL);
                }
            } else if (!hdr.udp.isValid() || hdr.packet_out.isValid()) {
                discard(DISCARD_LOCAL);
            } else if (!trees.apply().hit) {
                discard(DISCARD_LOCAL);
            } else if (hdr.udp.checksum == 0) {
                discard(DISCARD_CHECKSUM);
            } else if ((bit<32>)hdr.ipv4.length + (bit<32>)(LINK_BYTES + m.padding) != std.packet_length || hdr.udp.length + IPV4_BYTES != hdr.ipv4.length) {
                discard(DISCARD_LENGTH);
            } else {
                mark_to_drop(std);
                soundness.apply(hdr, m);
                if (m.outcome == 0) {
                    admission.apply(hdr, m);
                    if (m.outcome == 0) {
                        slot.apply(hdr, m, std);
                        if (m.send == 1) {
                            pass_on();
                        }
                        if (m.outcome == HANDED) {
                            hand_over();
                        } else if (m.outcome == LOOPED) {
                            round.apply(hdr, m, std);
                        } else {
                            if (m.bare == 1) {
                                bare.apply(hdr);
                            }
                            if (m.occupy == 1) {
                                occupy.apply(hdr, hdr.slot.length);
                            }
                            if (m.work != DO_NOTHING) {
                                blocks.apply(hdr, m);
                            }
                        }
                    }
                }
                tally.apply(hdr, m);
            }
        }
    }
}
