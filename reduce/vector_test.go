package reduce

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"unsafe"
)

func TestTypeOf(t *testing.T) {
	for got, want := range map[Type]Type{
		TypeOf[int32]():   Int32,
		TypeOf[int64]():   Int64,
		TypeOf[uint32]():  Uint32,
		TypeOf[uint64]():  Uint64,
		TypeOf[float32](): Float32,
		TypeOf[float64](): Float64,
		TypeOf[F16]():     Float16,
		TypeOf[BF16]():    BFloat16,
	} {
		if got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// testVector checks that v and the vector want are each other's conversion, on
// machines of either order.
func testVector[T Element](t *testing.T, v []T, want []byte) {
	t.Helper()
	if n := TypeOf[T]().Size(); n != int(unsafe.Sizeof(v[0])) {
		t.Errorf("%v: Size is %d", TypeOf[T](), n)
	}
	for _, own := range []bool{littleEndian, false} {
		defer func(was bool) { littleEndian = was }(littleEndian)
		littleEndian = own
		got := make([]byte, len(want))
		if Put(got, v); !bytes.Equal(got, want) {
			t.Errorf("%v: Put gives %x, want %x", TypeOf[T](), got, want)
		}
		back := make([]T, len(v))
		if Get(back, want); !bytes.Equal(Bytes(back), Bytes(v)) {
			t.Errorf("%v: Get gives %v, want %v", TypeOf[T](), back, v)
		}
		if LittleEndian() && !bytes.Equal(Bytes(v), want) {
			t.Errorf("%v: Bytes gives %x, want %x", TypeOf[T](), Bytes(v), want)
		}
	}
}

func TestPutAndGet(t *testing.T) {
	testVector(t, []int32{1, -2}, []byte{1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff})
	testVector(t, []uint32{0x01020304, 5}, []byte{4, 3, 2, 1, 5, 0, 0, 0})
	testVector(t, []int64{-2, 1}, []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0})
	testVector(t, []uint64{0x0102030405060708}, []byte{8, 7, 6, 5, 4, 3, 2, 1})
	testVector(t, []float32{1, -2.5}, []byte{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0})
	testVector(t, []float64{-2.5}, []byte{0, 0, 0, 0, 0, 0, 4, 0xc0})
	testVector(t, []F16{0x3c00, 0x1234}, []byte{0, 0x3c, 0x34, 0x12})
	testVector(t, []BF16{0x3f80}, []byte{0x80, 0x3f})
}

func TestBytesShareMemory(t *testing.T) {
	v := []uint32{1, 2, 3}
	b := Bytes(v[:2])
	if len(b) != 8 || cap(b) != 8 {
		t.Fatalf("length %d and capacity %d, want 8", len(b), cap(b))
	}
	binary.NativeEndian.PutUint32(b[4:], 7)
	if v[1] != 7 {
		t.Error("writing to the bytes does not write to the slice")
	}
	if len(Bytes([]float64(nil))) != 0 || len(Bytes([]float64{})) != 0 {
		t.Error("no elements have bytes")
	}
}

func TestConversionsPanicOnWrongLength(t *testing.T) {
	for name, call := range map[string]func(){
		"Put, long":         func() { Put(make([]byte, 9), []uint64{1}) },
		"Put, short":        func() { Put(make([]byte, 7), []uint64{1}) },
		"Get, long":         func() { Get(make([]uint64, 1), make([]byte, 9)) },
		"Get, short":        func() { Get(make([]uint64, 1), make([]byte, 7)) },
		"PutLocated, short": func() { PutLocated(make([]byte, 12), make([]Located[int32], 1)) },
		"GetLocated, long":  func() { GetLocated(make([]Located[int32], 1), make([]byte, 17)) },
	} {
		if !panics(call) {
			t.Errorf("%s: no panic", name)
		}
	}
}

func TestPutAndGetLocated(t *testing.T) {
	v := []Located[F16]{{0x1234, -2}, {F16From(float32(math.Inf(1))), 1 << 40}}
	want := []byte{
		0x34, 0x12, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0, 0x7c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
	}
	got := bytes.Repeat([]byte{guard}, len(want)) // what was there must go
	if PutLocated(got, v); !bytes.Equal(got, want) {
		t.Errorf("PutLocated gives %x, want %x", got, want)
	}
	back := make([]Located[F16], 2)
	if GetLocated(back, want); back[0] != v[0] || back[1] != v[1] {
		t.Errorf("GetLocated gives %v, want %v", back, v)
	}
}

// testAligned checks that vectors are viewed only where that is right; many
// machines would forgive it elsewhere, not all.
func testAligned[T Element](t *testing.T) {
	t.Helper()
	defer func(was bool) { littleEndian = was }(littleEndian)
	for align := range 16 {
		for _, littleEndian = range []bool{true, false} {
			want := littleEndian && align%TypeOf[T]().Size() == 0
			if got := aligned[T](place(make([]byte, 8), align).vector); got != want {
				t.Errorf("%v at %d, little-endian %v: aligned is %v", TypeOf[T](), align, littleEndian, got)
			}
		}
	}
}

func TestAligned(t *testing.T) {
	testAligned[uint32](t)
	testAligned[int64](t)
	testAligned[float32](t)
	testAligned[float64](t)
}
