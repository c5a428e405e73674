// The values of a slot, block by block, and which blocks exist.

#define BLOCK Block2048
#define HEADER block_2048_t
#define WIDTH 2048
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

#define BLOCK Block1216
#define HEADER block_1216_t
#define WIDTH 1216
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

#define BLOCK Block1024
#define HEADER block_1024_t
#define WIDTH 1024
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

#define BLOCK Block512
#define HEADER block_512_t
#define WIDTH 512
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

#define BLOCK Block256
#define HEADER block_256_t
#define WIDTH 256
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

#define BLOCK Block128
#define HEADER block_128_t
#define WIDTH 128
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

#define BLOCK Block64
#define HEADER block_64_t
#define WIDTH 64
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

#define BLOCK Block32
#define HEADER block_32_t
#define WIDTH 32
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

#define BLOCK Block16
#define HEADER block_16_t
#define WIDTH 16
#include "block.p4"
#undef BLOCK
#undef HEADER
#undef WIDTH

// Bare removes a packet's payload.
control Bare(inout headers hdr) {
    action bare() {
        hdr.block0.setInvalid();
        hdr.block1.setInvalid();
        hdr.block2.setInvalid();
        hdr.block3.setInvalid();
        hdr.block4.setInvalid();
        hdr.rest.setInvalid();
        hdr.tail128.setInvalid();
        hdr.tail64.setInvalid();
        hdr.tail32.setInvalid();
        hdr.tail16.setInvalid();
        hdr.tail8.setInvalid();
        hdr.tail4.setInvalid();
        hdr.tail2.setInvalid();
    }

    apply {
        bare();
    }
}

// Occupy gives a packet without payload the blocks for a given number of bytes.
control Occupy(inout headers hdr, in bit<16> length) {
    action whole() {
        hdr.block0.setValid();
        hdr.block1.setValid();
        hdr.block2.setValid();
        hdr.block3.setValid();
        hdr.block4.setValid();
        hdr.rest.setValid();
    }

    apply {
        if (length == CHUNK) {
            whole();
        } else {
            if (length >= 256) {
                hdr.block0.setValid();
            }
            if (length >= 512) {
                hdr.block1.setValid();
            }
            if (length >= 768) {
                hdr.block2.setValid();
            }
            if (length >= 1024) {
                hdr.block3.setValid();
            }
            if (length >= 1280) {
                hdr.block4.setValid();
            }
            if (length[7:7] == 1) {
                hdr.tail128.setValid();
            }
            if (length[6:6] == 1) {
                hdr.tail64.setValid();
            }
            if (length[5:5] == 1) {
                hdr.tail32.setValid();
            }
            if (length[4:4] == 1) {
                hdr.tail16.setValid();
            }
            if (length[3:3] == 1) {
                hdr.tail8.setValid();
            }
            if (length[2:2] == 1) {
                hdr.tail4.setValid();
            }
            if (length[1:1] == 1) {
                hdr.tail2.setValid();
            }
        }
    }
}

// With the rest block, all other blocks of a whole chunk exist.
@noWarn("invalid_header")
control Blocks(inout headers hdr, inout metadata m) {
    Whole() whole;
    Block2048(held0) block0;
    Block2048(held1) block1;
    Block2048(held2) block2;
    Block2048(held3) block3;
    Block2048(held4) block4;
    Block1216(held_rest) rest;
    Block1024(held_tail128) tail128;
    Block512(held_tail64) tail64;
    Block256(held_tail32) tail32;
    Block128(held_tail16) tail16;
    Block64(held_tail8) tail8;
    Block32(held_tail4) tail4;
    Block16(held_tail2) tail2;

    apply {
        if (hdr.rest.isValid() && m.work <= WHOLE) {
            whole.apply(hdr.block0, hdr.block1, hdr.block2, hdr.block3, hdr.block4, hdr.rest, hdr.scratch, m);
        } else {
            block0.apply(hdr.block0, hdr.scratch, hdr.fold, m);
            block1.apply(hdr.block1, hdr.scratch, hdr.fold, m);
            block2.apply(hdr.block2, hdr.scratch, hdr.fold, m);
            block3.apply(hdr.block3, hdr.scratch, hdr.fold, m);
            block4.apply(hdr.block4, hdr.scratch, hdr.fold, m);
            if (hdr.rest.isValid()) {
                rest.apply(hdr.rest, hdr.scratch, hdr.fold, m);
            } else {
                tail128.apply(hdr.tail128, hdr.scratch, hdr.fold, m);
                tail64.apply(hdr.tail64, hdr.scratch, hdr.fold, m);
                tail32.apply(hdr.tail32, hdr.scratch, hdr.fold, m);
                tail16.apply(hdr.tail16, hdr.scratch, hdr.fold, m);
                tail8.apply(hdr.tail8, hdr.scratch, hdr.fold, m);
                tail4.apply(hdr.tail4, hdr.scratch, hdr.fold, m);
                tail2.apply(hdr.tail2, hdr.scratch, hdr.fold, m);
            }
        }
    }
}
