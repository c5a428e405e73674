// Sums in block floating point, of at most BLOCK_CHILDREN children. The value of
// a mantissa is known only with the greatest exponent: so contributions are kept,
// one place for each child, and the last one folds all of them in one pass. No
// packet sees a partly folded slot.

// Align notes the exponent of a contribution and, for the last, computes the
// shifts. With the sign inverted (2^31 added), a mantissa shifted by s is the
// sum's share plus 2^31 >> s; the bias subtracts all of these again.
control Align(inout headers hdr, inout metadata m) {
    action first() {
        hdr.fold.exponents = 0;
    }

    action recall() {
        exponents.read(hdr.fold.exponents, m.place);
    }

    action note() {
        hdr.fold.own_place = m.place * BLOCK_CHILDREN + (bit<32>)hdr.tree.child;
        hdr.fold.exponents = hdr.fold.exponents | (bit<64>)(hdr.chunk.exponent ^ 0x80) << (bit<8>)(hdr.tree.child << 3);
        exponents.write(m.place, hdr.fold.exponents);
    }

    // The greatest: absent children have the lowest.
#define GREATER(c) if (hdr.fold.exponents[8 * c + 7:8 * c] > hdr.fold.greatest) { take ## c(); }
    action own() {
        hdr.fold.others = hdr.tree.everyone & ~hdr.tree.one;
        hdr.fold.greatest = hdr.chunk.exponent ^ 0x80;
    }

    action take0() { hdr.fold.greatest = hdr.fold.exponents[7:0]; }
    action take1() { hdr.fold.greatest = hdr.fold.exponents[15:8]; }
    action take2() { hdr.fold.greatest = hdr.fold.exponents[23:16]; }
    action take3() { hdr.fold.greatest = hdr.fold.exponents[31:24]; }
    action take4() { hdr.fold.greatest = hdr.fold.exponents[39:32]; }
    action take5() { hdr.fold.greatest = hdr.fold.exponents[47:40]; }
    action take6() { hdr.fold.greatest = hdr.fold.exponents[55:48]; }
    action take7() { hdr.fold.greatest = hdr.fold.exponents[63:56]; }

    // One action for each step: within one, p4c recomputes a name's value at
    // every use.
#define BELOW(c) hdr.fold.shift ## c = hdr.fold.greatest - hdr.fold.exponents[8 * c + 7:8 * c];
    action below() {
        hdr.fold.own_shift = hdr.fold.greatest - (hdr.chunk.exponent ^ 0x80);
        BELOW(0)
        BELOW(1)
        BELOW(2)
        BELOW(3)
        BELOW(4)
        BELOW(5)
        BELOW(6)
        BELOW(7)
    }
#undef BELOW

    // After a shift by 31 only the sign of a mantissa is left.
#define LIMIT(shift) shift = shift > 31 ? 8w31 : shift;
    action limit() {
        LIMIT(hdr.fold.own_shift)
        LIMIT(hdr.fold.shift0)
        LIMIT(hdr.fold.shift1)
        LIMIT(hdr.fold.shift2)
        LIMIT(hdr.fold.shift3)
        LIMIT(hdr.fold.shift4)
        LIMIT(hdr.fold.shift5)
        LIMIT(hdr.fold.shift6)
        LIMIT(hdr.fold.shift7)
    }
#undef LIMIT

#define REMOVE(c) \
    hdr.fold.place ## c = m.place * BLOCK_CHILDREN + c; \
    hdr.fold.mask ## c = 32w0xffffffff >> hdr.fold.shift ## c; \
    hdr.fold.bias = hdr.fold.bias - (((bit<32>)hdr.fold.others[c:c] << 31) >> hdr.fold.shift ## c);
    action remove() {
        hdr.fold.own_mask = 32w0xffffffff >> hdr.fold.own_shift;
        hdr.fold.bias = 0 - (32w0x80000000 >> hdr.fold.own_shift);
        REMOVE(0)
        REMOVE(1)
        REMOVE(2)
        REMOVE(3)
        REMOVE(4)
        REMOVE(5)
        REMOVE(6)
        REMOVE(7)
    }
#undef REMOVE

    action close() {
        hdr.chunk.exponent = hdr.fold.greatest ^ 0x80;
        exponents.write(m.place, (bit<64>)(hdr.fold.greatest ^ 0x80));
    }

    apply {
        if (hdr.slot.arrived == hdr.tree.one) {
            first();
        } else {
            recall();
        }
        note();
        if (hdr.slot.arrived == hdr.tree.everyone) {
            own();
            GREATER(0)
            GREATER(1)
            GREATER(2)
            GREATER(3)
            GREATER(4)
            GREATER(5)
            GREATER(6)
            GREATER(7)
            below();
            limit();
            remove();
            close();
        }
    }
#undef GREATER
}

// Exponent is that of a slot's value: of an arriving result, or of a value that
// is sent again.
control Exponent(inout headers hdr, inout metadata m) {
    action store() {
        exponents.write(m.place, (bit<64>)hdr.chunk.exponent);
    }

    action load() {
        exponents.read(hdr.fold.exponents, m.place);
        hdr.chunk.exponent = hdr.fold.exponents[7:0];
    }

    apply {
        if (hdr.slot.signature[7:0] == BLOCK32) {
            if (m.outcome == RESULT_TAKEN) {
                store();
            } else {
                load();
            }
        }
    }
}
