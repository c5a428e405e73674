// A small program with one of everything that package p4rt writes and reads.
// Its tests use it on a target in the process, and on bmv2. To compile it:
//
//   p4c-bm2-ss --std p4-16 --arch v1model --p4runtime-files toy.p4info.txt -o all.json toy.p4
//   jq 'walk(if type == "object" then del(.source_info) else . end)' all.json >toy.json
//   rm all.json; sha256sum toy.* >sums
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_in")
header from_switch_t {
    bit<9>  port;
    bit<7>  pad;
    bit<32> mark;
}

@controller_header("packet_out")
header to_switch_t {
    bit<9>  port; // 0: back to the controller
    bit<7>  pad;
    bit<32> mark;
}

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> kind;
}

struct headers_t {
    from_switch_t from_switch;
    to_switch_t   to_switch;
    ethernet_t    ethernet;
}

struct metadata_t {
    bit<32> address;
    bit<20> label;
}

parser read(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default:  ethernet;
        }
    }
    state from_controller {
        packet.extract(headers.to_switch);
        transition ethernet;
    }
    state ethernet {
        packet.extract(headers.ethernet);
        transition accept;
    }
}

control check(inout headers_t headers, inout metadata_t meta) { apply { } }

control ingress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets) used;

    action forward(bit<9> port, @format(MAC_ADDRESS) bit<48> next) {
        standard.egress_spec = port;
        headers.ethernet.destination = next;
    }
    action copy(bit<16> group) { standard.mcast_grp = group; }
    action drop() { mark_to_drop(standard); }

    table routes {
        key = { meta.address: lpm @name("address") @format(IPV4_ADDRESS); }
        actions = { forward; copy; @defaultonly drop; }
        const default_action = drop();
        counters = used;
        size = 64;
    }
    table pairs {
        key = {
            standard.ingress_port: exact @name("port");
            meta.label:            exact @name("label");
        }
        actions = { forward; NoAction; }
        size = 4;
    }
    table guards {
        key = {
            standard.ingress_port: optional @name("port");
            meta.label:            optional @name("label");
        }
        actions = { drop; NoAction; }
        size = 16;
    }
    table kinds {
        key = { headers.ethernet.kind: ternary @name("kind"); }
        actions = { drop; NoAction; }
        const entries = {
            0x0800:             NoAction();
            0x8000 &&& 0x8000:  drop();
        }
    }

    apply {
        if (headers.to_switch.isValid()) {
            seen.count(1);
            if (headers.to_switch.port == 0) {
                headers.from_switch.setValid();
                headers.from_switch.port = standard.ingress_port;
                headers.from_switch.mark = headers.to_switch.mark;
                standard.egress_spec = CPU_PORT;
            } else {
                standard.egress_spec = headers.to_switch.port;
            }
            headers.to_switch.setInvalid();
        } else {
            seen.count(0);
            meta.address = headers.ethernet.source[31:0];
            meta.label = headers.ethernet.source[19:0];
            if (kinds.apply().hit && guards.apply().hit) {
                pairs.apply();
            }
            routes.apply();
        }
    }
}

control egress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control update(inout headers_t headers, inout metadata_t meta) { apply { } }

control write(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.from_switch);
        packet.emit(headers.ethernet);
    }
}

V1Switch(read(), check(), ingress(), egress(), update(), write()) main;
