// A packet that carries the value of a slot may have to grow: a probe is only a
// header, its answer a whole chunk. bmv2 gives a packet room for 512 bytes more
// than it had on arrival, and crashes if that is not enough. So such a packet
// loops first: it leaves by one port of the switch and returns by another, with
// LOOP_BYTES of padding, and is processed as if it had arrived for the first
// time. A packet on the loop changes no state. A target without that limit needs
// no loop: there, LOOP_BYTES can be a whole chunk.

// Unwind removes the loop's headers from a packet, and computes its room.
control Unwind(inout headers hdr, inout metadata m, in standard_metadata_t std) {
    action first() {
        m.room = LOOP_BYTES;
        m.port = (bit<16>)std.ingress_port;
    }

    action later() {
        m.room = LOOP_BYTES * ((bit<16>)hdr.loop.rounds + 1);
        m.padding = LOOP_BYTES * (bit<16>)hdr.loop.rounds + LOOP_HEADER_BYTES;
        m.port = hdr.loop.port;
        hdr.ethernet.type = ETHERTYPE_IPV4;
        hdr.pad0.setInvalid();
        hdr.pad1.setInvalid();
        hdr.loop.setInvalid();
    }

    apply {
        if (hdr.loop.isValid()) {
            later();
        } else {
            first();
        }
    }
}

// Grow finds out whether a packet needs more room: the last contribution to a
// broadcast that is not the vector; a probe of a child that is answered with the
// result; or the parent's want.
control Grow(inout headers hdr, inout metadata m) {
    action round() {
        m.outcome = LOOPED;
    }

    apply {
        if (hdr.slot.length > m.room) {
            if (hdr.slot.state == FINISHED && hdr.chunk.type == PROBE && hdr.slot.wants & hdr.tree.one != 0 ||
                hdr.slot.state == COMPLETE && hdr.chunk.type == WANT ||
                hdr.slot.state == OPEN && hdr.chunk.type == CONTRIBUTION && hdr.chunk.flags & SOURCE == 0 &&
                hdr.slot.arrived != hdr.slot.arrived | hdr.tree.one && hdr.slot.arrived | hdr.tree.one == hdr.tree.everyone) {
                round();
            }
        }
    }
}

// Round sends a packet on the loop.
control Round(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    action first() {
        hdr.ethernet.type = ETHERTYPE_LOOP;
        hdr.loop.setValid();
        hdr.loop.rounds = 1;
        hdr.loop.port = m.port;
        hdr.pad0.setValid();
        hdr.pad0.first = 0;
        hdr.pad0.second = 0;
        std.egress_spec = LOOP_OUT_PORT;
    }

    action second() {
        hdr.loop.rounds = 2;
        hdr.pad1.setValid();
        hdr.pad1.first = 0;
        hdr.pad1.second = 0;
    }

    apply {
        first();
        if (m.padding != 0) {
            second();
        }
    }
}
