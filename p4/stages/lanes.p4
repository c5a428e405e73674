// Masks for lanes of 16, 32 and 64 bits, as wide as the widest block. Narrower
// blocks use their last bits.

#define TWICE(x) (x ++ x)
#define FILL(x) TWICE(TWICE(TWICE(TWICE(TWICE(x)))))

// The highest bit of each lane, the others, and the lowest bit.
const bit<2048> TOP_16 = FILL(64w0x8000800080008000);
const bit<2048> TOP_32 = FILL(64w0x8000000080000000);
const bit<2048> TOP_64 = FILL(64w0x8000000000000000);
const bit<2048> REST_16 = FILL(64w0x7fff7fff7fff7fff);
const bit<2048> REST_32 = FILL(64w0x7fffffff7fffffff);
const bit<2048> REST_64 = FILL(64w0x7fffffffffffffff);

// The lowest bit of each lane: a number times this is that number in each lane.
const bit<2048> ONE_32 = FILL(64w0x0000000100000001);

// The lower byte of each two; the lowest of each four, and the next; the lowest
// two of each eight, and the next.
const bit<2048> LOW_8 = FILL(64w0x00ff00ff00ff00ff);
const bit<2048> FIRST_32 = FILL(64w0x000000ff000000ff);
const bit<2048> SECOND_32 = FILL(64w0x0000ff000000ff00);
const bit<2048> FIRST_64 = FILL(64w0x000000000000ffff);
const bit<2048> SECOND_64 = FILL(64w0x00000000ffff0000);

// The seven lower bits of the lowest byte of each four, and its highest.
const bit<2048> SEVEN_32 = FILL(64w0x0000007f0000007f);
const bit<2048> EIGHTH_32 = FILL(64w0x0000008000000080);

// Added to a magnitude, this sets the highest bit only if it is above infinity:
// REST less the bits of infinity.
const bit<2048> ABOVE_F16 = FILL(64w0x03ff03ff03ff03ff);
const bit<2048> ABOVE_BF16 = FILL(64w0x007f007f007f007f);
const bit<2048> ABOVE_F32 = FILL(64w0x007fffff007fffff);
const bit<2048> ABOVE_F64 = FILL(64w0x000fffffffffffff);

// The canonical NaNs, little-endian.
const bit<2048> NAN_F16 = FILL(64w0x007e007e007e007e);
const bit<2048> NAN_BF16 = FILL(64w0xc07fc07fc07fc07f);
const bit<2048> NAN_F32 = FILL(64w0x0000c07f0000c07f);
const bit<2048> NAN_F64 = FILL(64w0x000000000000f87f);

// Operations of the blocks. Elements are little-endian; where their order
// matters, the held value is big-endian until the last contribution.
const bit<8> DO_NOTHING = 0;
const bit<8> DO_STORE = 1;   // the packet's value is stored
const bit<8> DO_LOAD = 2;    // the held value is sent
const bit<8> DO_AND = 3;
const bit<8> DO_OR = 4;
const bit<8> DO_XOR = 5;
const bit<8> DO_SWAP32 = 6;  // the packet's value is stored, big-endian
const bit<8> DO_SUM32 = 7;   // a sum, not the last contribution
const bit<8> DO_LAST32 = 8;  // ... the last contribution
const bit<8> WHOLE = DO_LAST32;  // operations up to here exist for all blocks of a whole chunk at once
const bit<8> DO_SWAP64 = 9;  // the same of 64 bits
const bit<8> DO_SUM64 = 10;
const bit<8> DO_LAST64 = 11;
const bit<8> DO_STEPS = 12;  // it takes three steps
const bit<8> DO_KEEP = 13;   // the contribution is kept beside the others
const bit<8> DO_FOLD = 14;   // ... and all are folded with the last one
const bit<8> DO_AGENT = 15;  // the agent does it

// The steps: values are mapped, so that one fold serves several types.
const bit<8> MAP_SWAP32 = 1;   // unsigned numbers in order: big-endian
const bit<8> MAP_SWAP64 = 2;
const bit<8> MAP_SIGNED32 = 3; // signed numbers in order: ... with the sign inverted
const bit<8> MAP_SIGNED64 = 4;
const bit<8> MAP_TRUTH32 = 5;  // 1 or 0
const bit<8> MAP_TRUTH64 = 6;
const bit<8> MAP_MIN_F16 = 7;  // floating-point numbers in order, NaN below all
const bit<8> MAP_MIN_BF16 = 8;
const bit<8> MAP_MIN_F32 = 9;
const bit<8> MAP_MIN_F64 = 10;
const bit<8> MAP_MAX_F16 = 11; // ... and above all
const bit<8> MAP_MAX_BF16 = 12;
const bit<8> MAP_MAX_F32 = 13;
const bit<8> MAP_MAX_F64 = 14;

// It is folded with the held value.
const bit<8> FOLD_FIRST = 0;   // nothing is held
const bit<8> FOLD_AND = 1;
const bit<8> FOLD_OR = 2;
const bit<8> FOLD_XOR = 3;
const bit<8> FOLD_MIN16 = 4;
const bit<8> FOLD_MIN32 = 5;
const bit<8> FOLD_MIN64 = 6;
const bit<8> FOLD_MAX16 = 7;
const bit<8> FOLD_MAX32 = 8;
const bit<8> FOLD_MAX64 = 9;

// And after the last it is mapped back.
const bit<8> UNMAP_NOT = 0;
const bit<8> UNMAP_SWAP32 = 1;
const bit<8> UNMAP_SWAP64 = 2;
const bit<8> UNMAP_SIGNED32 = 3;
const bit<8> UNMAP_SIGNED64 = 4;
const bit<8> UNMAP_F16 = 5;
const bit<8> UNMAP_BF16 = 6;
const bit<8> UNMAP_F32 = 7;
const bit<8> UNMAP_F64 = 8;

// Steps on block.value, a word of WIDTH bits, with T for intermediate values and,
// in a fold, A for the held value. LANE(TOP_32) is a mask of that width.
//
// bmv2 writes a word into bytes at every assignment, which costs more than a step
// of arithmetic: so one expression is better than two. p4c substitutes a name's
// value wherever it can, which recomputes it at every use. It cannot after an
// assignment to a name in that value: the order of the steps avoids computing
// any value twice.
#define LANE(mask) mask[WIDTH - 1:0]
#define PASTE(x, y) x ## y
#define WIDE(name, width) PASTE(name, width)
#define A scratch.WIDE(a, WIDTH)
#define T scratch.WIDE(t, WIDTH)

// A mask for words of a given width, and such words with the bytes of each lane
// reversed.
#define CUT(mask, width) mask[width - 1:0]
#define SWAPPED_32(v, width) (((v >> 24) & CUT(FIRST_32, width)) | ((v >> 8) & CUT(SECOND_32, width)) | \
    ((v & CUT(SECOND_32, width)) << 8) | ((v & CUT(FIRST_32, width)) << 24))

// The sum of a and of v, whose bytes are reversed. The highest bits are added
// separately, so that no lane carries into the next.
#define SUM_32(v, a, width) \
    (((a & CUT(REST_32, width)) + (((v >> 24) & CUT(FIRST_32, width)) | ((v >> 8) & CUT(SECOND_32, width)) | \
        ((v & CUT(SECOND_32, width)) << 8) | ((v & CUT(SEVEN_32, width)) << 24))) ^ \
    (a & CUT(TOP_32, width)) ^ ((v & CUT(EIGHTH_32, width)) << 24))

// Reverses bytes.
#define SWAP_16(v) v = ((v >> 8) & LANE(LOW_8)) | ((v & LANE(LOW_8)) << 8);
#define SWAP_32(v) v = SWAPPED_32(v, WIDTH);
#define SWAP_64(v) SWAP_16(v) \
    v = ((v >> 48) & LANE(FIRST_64)) | ((v >> 16) & LANE(SECOND_64)) | \
    ((v & LANE(SECOND_64)) << 16) | ((v & LANE(FIRST_64)) << 48);

// With only highest bits set in v: copies that bit to all others of its lane, or
// to all of it. No lane borrows from another.
#define OTHERS(v, lane) ((v) - ((v) >> (lane - 1)))
#define WHOLE(v, lane) ((v) | OTHERS(v, lane))

#define TURN(lane) block.value = block.value ^ LANE(TOP_ ## lane);

// 1 in little-endian order is 7 bits below the highest.
#define TRUTH(lane) block.value = \
    ((((block.value & LANE(REST_ ## lane)) + LANE(REST_ ## lane)) | block.value) & LANE(TOP_ ## lane)) >> 7;

// The highest bits are added separately, so that no lane carries into the next.
#define ADD(lane) block.value = \
    ((A & LANE(REST_ ## lane)) + (block.value & LANE(REST_ ## lane))) ^ ((A ^ block.value) & LANE(TOP_ ## lane));

// Adds the contribution to the held value, and restores the byte order.
#define ADD_SWAPPED_32 block.value = SUM_32(block.value, A, WIDTH);
#define ADD_SWAPPED_64 SWAP_64(block.value) ADD(64)

// Mantissas with the sign inverted, so that none is negative, shifted right in
// their lanes.
#define SHIFTED(v, shift, mask) (((v) >> shift) & ((bit<WIDTH>)mask * LANE(ONE_32)))

// A becomes its difference from the block, and T the full lanes in which it was
// less, unsigned: the highest bit decides or, where it is equal, the rest, whose
// difference borrows from a highest bit set for that.
#define LESS(lane) \
    T = (A | LANE(TOP_ ## lane)) - (block.value & LANE(REST_ ## lane)); \
    A = A ^ block.value; \
    T = ((block.value & A) | ((A ^ LANE(TOP_ ## lane)) & (T ^ LANE(TOP_ ## lane)))) & LANE(TOP_ ## lane); \
    T = WHOLE(T, lane);
#define LEAST(lane) LESS(lane) block.value = block.value ^ (A & T);
#define GREATEST(lane) LESS(lane) block.value = block.value ^ A ^ (A & T);

// The highest bit where v is NaN, without the sign.
#define NAN_OF(v, lane, type) (((v & LANE(REST_ ## lane)) + LANE(ABOVE_ ## type)) & LANE(TOP_ ## lane))

// Inverts all bits of a negative number, and the sign of a positive one: so they
// have the order of unsigned ones, -0 before +0. NaN becomes the largest of all,
// or the least.
#define MAXIMAL(lane, type) \
    SWAP_ ## lane(block.value) \
    T = NAN_OF(block.value, lane, type); \
    block.value = block.value ^ LANE(TOP_ ## lane) ^ OTHERS(block.value & LANE(TOP_ ## lane), lane); \
    T = WHOLE(T, lane); \
    block.value = block.value | T;
#define MINIMAL(lane, type) MAXIMAL(lane, type) block.value = block.value ^ T;

// And back, with the canonical NaN. A lane of equal bytes is the same in either
// order of bytes.
#define NUMBER(lane, type) \
    block.value = block.value ^ LANE(TOP_ ## lane) ^ OTHERS((block.value & LANE(TOP_ ## lane)) ^ LANE(TOP_ ## lane), lane); \
    T = NAN_OF(block.value, lane, type); \
    SWAP_ ## lane(block.value) \
    T = WHOLE(T, lane); \
    block.value = ((block.value | T) ^ T) | (T & LANE(NAN_ ## type));
