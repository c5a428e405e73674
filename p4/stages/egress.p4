// Egress: several threads, without state but counters. It addresses each copy of a
// packet to its receiver.

control Outbound(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    // Copies per epoch and neighbour. A counter's bytes are those of the packet as
    // it came in: they are counted where the copy is at least as long.
    counter(EPOCHS * NEIGHBOURS, CounterType.packets_and_bytes) sent;
    counter(EPOCHS * NEIGHBOURS, CounterType.packets) shortened;

    Bare() bare;

    action port(bit<48> mac, bit<32> address) {
        hdr.ethernet.source = mac;
        m.address = address;
    }

    table ports {
        key = { std.egress_port: exact @name("number"); }
        actions = { port; @defaultonly NoAction; }
        const default_action = NoAction;
        size = PORTS;
    }

    action neighbour(bit<48> mac, bit<32> address, bit<16> udp, bit<16> child, bit<48> cookie) {
        hdr.ethernet.destination = mac;
        hdr.ipv4.destination = address;
        hdr.udp.source = hdr.udp.destination;  // of the tree
        hdr.udp.destination = udp;
        hdr.chunk.child = child;
        hdr.chunk.cookie = cookie;
    }

    action nobody() {
        mark_to_drop(std);
    }

    table rewrite {
        key = {
            m.epoch: exact @name("epoch");
            m.instance: exact @name("instance");
        }
        actions = { neighbour; @defaultonly nobody; }
        const default_action = nobody;
        size = EPOCHS * (CHILDREN + 1);
    }

    action tell() {
        m.addressed = 1;
        hdr.claim.lowest = m.lowest;
        hdr.ipv4.service = 0;
        hdr.ipv4.identification = 0;
        hdr.ipv4.reserved = 0;
        hdr.ipv4.dont_fragment = 1;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.length = IPV4_BYTES + UDP_BYTES + HEADER_BYTES + m.length;
        hdr.udp.length = UDP_BYTES + HEADER_BYTES + m.length;
    }

    action count() {
        sent.count((bit<32>)m.epoch * NEIGHBOURS + (m.instance == PARENT ? 0 : (bit<32>)m.instance));
    }

    action count_shortened() {
        shortened.count((bit<32>)m.epoch * NEIGHBOURS + (m.instance == PARENT ? 0 : (bit<32>)m.instance));
    }

    action to_agent() {
        hdr.packet_in.setValid();
        hdr.packet_in.port = (bit<16>)std.ingress_port;
        hdr.packet_in.tree = m.tree;
        hdr.packet_in.epoch = m.epoch;
    }

    apply {
        if (std.egress_port == CPU_PORT) {
            to_agent();
        } else if (!hdr.packet_out.isValid() || hdr.packet_out.port == 0) {
            if (m.send == 1) {
                if (std.egress_rid != 0) {
                    m.instance = std.egress_rid;
                }
                m.length = 0;
                if (hdr.chunk.type == RESULT) {
                    if ((m.wants >> (bit<8>)(m.instance - 1)) & 1 == 1) {
                        hdr.chunk.flags = SINK;
                        m.length = m.value_bytes;
                    } else {
                        hdr.chunk.flags = 0;
                        bare.apply(hdr);
                    }
                } else if (hdr.chunk.type == CONTRIBUTION) {
                    m.length = m.value_bytes;
                } else if (hdr.chunk.type == ERROR) {
                    m.length = ERROR_BYTES;
                } else if (m.instance == PARENT) {
                    hdr.chunk.type = PROBE;
                }
                tell();
                bool known = rewrite.apply().hit;
                if (m.instance == m.teller) {
                    nobody();
                } else if (known) {
                    if ((bit<32>)(LINK_BYTES + hdr.ipv4.length) >= std.packet_length) {
                        count();
                    } else {
                        count_shortened();
                    }
                }
            }
            ports.apply();
            if (m.addressed == 1) {
                hdr.ipv4.source = m.address;
            }
        }
    }
}
