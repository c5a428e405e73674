// Checksums of IPv4 and UDP. Absent blocks do not count; bytes that the parser
// left unread do.
//
// The sum over a whole valid packet, including its checksum, is 0. One of UDP that
// computes to 0 is sent as 0xffff, because 0 means none, which no switch accepts for
// its trees: the second update of UDP's sees what the first has written.

#define IPV4_SUMMED \
    hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.service, hdr.ipv4.length, \
    hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, \
    hdr.ipv4.more_fragments, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, \
    hdr.ipv4.source, hdr.ipv4.destination

#define UDP_SUMMED \
    hdr.ipv4.source, hdr.ipv4.destination, 8w0, hdr.ipv4.protocol, hdr.udp.length, \
    hdr.udp.source, hdr.udp.destination, hdr.udp.length, \
    hdr.chunk, hdr.claim, hdr.disagreement, \
    hdr.block0, hdr.block1, hdr.block2, hdr.block3, hdr.block4, hdr.rest, \
    hdr.tail128, hdr.tail64, hdr.tail32, hdr.tail16, hdr.tail8, hdr.tail4, hdr.tail2

control Verify(inout headers hdr, inout metadata m) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.words == 5 && !hdr.packet_out.isValid(),
            { IPV4_SUMMED, hdr.ipv4.checksum }, m.zero, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.chunk.isValid() && hdr.udp.checksum != 0 && !hdr.packet_out.isValid(),
            { UDP_SUMMED, hdr.udp.checksum }, m.zero, HashAlgorithm.csum16);
    }
}

control Sum(inout headers hdr, inout metadata m) {
    apply {
        update_checksum(m.addressed == 1, { IPV4_SUMMED }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(m.addressed == 1 && hdr.udp.isValid(),
            { UDP_SUMMED }, hdr.udp.checksum, HashAlgorithm.csum16);
        update_checksum(m.addressed == 1 && hdr.udp.isValid() && hdr.udp.checksum == 0,
            { m.zero }, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}
