// The switch's side of a reduction, as docs/protocol.md describes it and the Go
// package internal/core/switchreduce does it, beside IPv4 forwarding.
//
//   Reader    one chunk's headers, and its values as wide blocks
//   Verify    checksums of IPv4 and UDP
//   Ingress   Forward    packets for no tree here leave
//             Soundness  is the packet valid?
//             Admission  is it allowed from its sender?
//             Slot       the state of its chunk, and the receivers
//             Blocks     the values: reduced, stored, or loaded
//             Tally      one outcome for each packet
//   Egress    each copy is addressed to its child, or to the parent
//   Sum       checksums
//   Writer

#include <core.p4>
#include <v1model.p4>

#include "stages/limits.p4"
#include "stages/outcomes.p4"
#include "stages/headers.p4"
#include "stages/lanes.p4"
#include "stages/parser.p4"
#include "stages/checksums.p4"
#include "stages/forward.p4"
#include "stages/soundness.p4"
#include "stages/admission.p4"
#include "stages/registers.p4"
#include "stages/send.p4"
#include "stages/block32.p4"
#include "stages/contribution.p4"
#include "stages/answer.p4"
#include "stages/probe.p4"
#include "stages/error.p4"
#include "stages/loop.p4"
#include "stages/slot.p4"
#include "stages/whole.p4"
#include "stages/blocks.p4"
#include "stages/tally.p4"
#include "stages/ingress.p4"
#include "stages/egress.p4"

@pkginfo(name="tributary", version="1")
V1Switch(Reader(), Verify(), Inbound(), Outbound(), Sum(), Writer()) main;
