// The parser. On bmv2 the headers of a truncated packet keep the last packet's
// bytes: ingress drops it before it reads any. Cases are tried in order, so the
// most common come first.

parser Reader(packet_in packet, out headers hdr, inout metadata m, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: agent;
            LOOP_IN_PORT: loop;
            default: link;
        }
    }

    state agent {
        packet.extract(hdr.packet_out);
        transition link;
    }

    state loop {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_LOOP: rounds;
            ETHERTYPE_IPV4: network;
            default: accept;
        }
    }

    state rounds {
        packet.extract(hdr.loop);
        packet.extract(hdr.pad0);
        transition select(hdr.loop.rounds) {
            1: network;
            default: two_rounds;
        }
    }

    state two_rounds {
        packet.extract(hdr.pad1);
        transition network;
    }

    state link {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: network;
            default: accept;
        }
    }

    // Packets with options and fragments cannot be for a tree, and are forwarded
    // by their first 20 bytes.
    state network {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.more_fragments, hdr.ipv4.offset, hdr.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_UDP): transport;
            (4, _, _, _, _): accept;
            default: foreign;
        }
    }

    // Malformed IPv4.
    state foreign {
        verify(false, error.HeaderTooShort);
        transition accept;
    }

    // The ports of trees are one range, so that the payload of other traffic is
    // not parsed.
    state transport {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination, hdr.udp.length) {
            (_, 0 .. UDP_BYTES + HEADER_BYTES - 1): accept;
            (TREE_PORTS .. TREE_PORTS + TREES - 1, _): tributary;
            default: accept;
        }
    }

    state tributary {
        m.length = hdr.udp.length - (UDP_BYTES + HEADER_BYTES);
        packet.extract(hdr.chunk);
        m.signature = packet.lookahead<signature_t>();
        packet.extract(hdr.claim);
        transition select(hdr.chunk.type, m.length) {
            (CONTRIBUTION, _): payload;
            (RESULT, _): payload;
            (ERROR, ERROR_BYTES): disagreement;
            default: accept;
        }
    }

    state disagreement {
        packet.extract(hdr.disagreement);
        transition accept;
    }

    // Bytes beyond all blocks are not parsed; the length shows them.
    state payload {
        transition select(m.length[15:8]) {
            5: blocks5;
            4: blocks4;
            3: blocks3;
            2: blocks2;
            1: blocks1;
            0: tail;
            default: accept;
        }
    }

    state blocks5 {
        packet.extract(hdr.block0);
        packet.extract(hdr.block1);
        packet.extract(hdr.block2);
        packet.extract(hdr.block3);
        packet.extract(hdr.block4);
        transition select(m.length[7:0]) {
            CHUNK - 5 * 256: rest;
            default: tail;
        }
    }

    state rest {
        packet.extract(hdr.rest);
        transition accept;
    }

    state blocks4 {
        packet.extract(hdr.block0);
        packet.extract(hdr.block1);
        packet.extract(hdr.block2);
        packet.extract(hdr.block3);
        transition tail;
    }

    state blocks3 {
        packet.extract(hdr.block0);
        packet.extract(hdr.block1);
        packet.extract(hdr.block2);
        transition tail;
    }

    state blocks2 {
        packet.extract(hdr.block0);
        packet.extract(hdr.block1);
        transition tail;
    }

    state blocks1 {
        packet.extract(hdr.block0);
        transition tail;
    }

#define TAIL(bytes, bit_, next) \
    state after ## bytes { \
        transition select(m.length[bit_:bit_]) { \
            1: take ## bytes; \
            default: next; \
        } \
    } \
    state take ## bytes { \
        packet.extract(hdr.tail ## bytes); \
        transition next; \
    }

    state tail {
        transition select(m.length[7:0]) {
            0: accept;
            default: after128;
        }
    }

    TAIL(128, 7, after64)
    TAIL(64, 6, after32)
    TAIL(32, 5, after16)
    TAIL(16, 4, after8)
    TAIL(8, 3, after4)
    TAIL(4, 2, after2)
    TAIL(2, 1, accept)
#undef TAIL
}

control Writer(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.loop);
        packet.emit(hdr.pad0);
        packet.emit(hdr.pad1);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.chunk);
        packet.emit(hdr.claim);
        packet.emit(hdr.disagreement);
        packet.emit(hdr.block0);
        packet.emit(hdr.block1);
        packet.emit(hdr.block2);
        packet.emit(hdr.block3);
        packet.emit(hdr.block4);
        packet.emit(hdr.rest);
        packet.emit(hdr.tail128);
        packet.emit(hdr.tail64);
        packet.emit(hdr.tail32);
        packet.emit(hdr.tail16);
        packet.emit(hdr.tail8);
        packet.emit(hdr.tail4);
        packet.emit(hdr.tail2);
    }
}
