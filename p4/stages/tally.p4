// Counters, at the end of ingress.

control Tally(inout headers hdr, inout metadata m) {
    counter(TREES * OUTCOMES, CounterType.packets) outcomes;  // per tree and outcome
    counter(EPOCHS * TRAFFICS, CounterType.packets) traffic;  // per epoch, for leases
    // Per epoch and neighbour, as it arrived: not again after the loop.
    counter(EPOCHS * NEIGHBOURS, CounterType.packets_and_bytes) received;
    counter(EPOCHS * NEIGHBOURS, CounterType.packets) forged;

    action outcome() {
        outcomes.count((bit<32>)m.tree * OUTCOMES + (bit<32>)m.outcome);
    }

    action admitted() {
        outcomes.count((bit<32>)m.tree * OUTCOMES + (bit<32>)m.outcome);
        traffic.count((bit<32>)m.epoch * TRAFFICS + (m.sender == CHILD ? (bit<32>)TRAFFIC_CHILD : TRAFFIC_PARENT));
    }

    action arrival() {
        received.count((bit<32>)m.epoch * NEIGHBOURS + (m.sender == CHILD ? (bit<32>)hdr.tree.child + 1 : 0));
    }

    // A packet in a neighbour's name without its cookie.
    action forgery() {
        forged.count((bit<32>)m.epoch * NEIGHBOURS + (m.sender == CHILD ? (bit<32>)hdr.tree.child + 1 : 0));
    }

    action up() {
        traffic.count((bit<32>)m.epoch * TRAFFICS + TRAFFIC_UP);
    }

    apply {
        if (m.admitted == 1) {
            admitted();
            if (m.padding == 0) {
                arrival();
            }
        } else {
            outcome();
            if (m.outcome == DROP_COOKIE) {
                forgery();
            }
        }
        if (m.up == 1) {
            up();
        }
    }
}
