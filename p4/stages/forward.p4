// IPv4 forwarding, in ingress.

control Forward(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    // The checksum is updated for the time to live alone, so that options need
    // not be parsed (RFC 1624).
    action forward(bit<16> port, bit<48> next_hop) {
        std.egress_spec = (bit<9>)port;
        hdr.ethernet.destination = next_hop;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        bit<32> sum = (bit<32>)hdr.ipv4.checksum + 0x100;
        hdr.ipv4.checksum = sum[15:0] + sum[31:16];
    }

    action local() {
        m.local = 1;
    }

    action unreachable() {
        mark_to_drop(std);
        m.outcome = DISCARD_ROUTE;
    }

    table routes {
        key = { hdr.ipv4.destination: lpm @name("prefix"); }
        actions = { forward; local; @defaultonly unreachable; }
        default_action = unreachable;
        size = ROUTES;
    }

    apply {
        routes.apply();
    }
}
