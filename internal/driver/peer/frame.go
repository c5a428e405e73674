package peer

import (
	"encoding/binary"
	"fmt"
)

// HeadSize is the bytes of a frame before its payload.
const HeadSize = 8

const align = 8

// mayWait is the bit of a stream, in class Message, by which a sender says that the
// acknowledgement of the frame may wait.
const mayWait = 1 << 23

// Frame is a frame that has come.
type Frame struct {
	Stream uint32
	Bytes  []byte
	Rest   int // bytes of the payload behind Bytes that lie where a Placer has said
}

// What the connection itself says.
const (
	itself   Service = 0
	segments Service = 255 // a part of the frames of a connection that has several paths
	ping     byte    = 1
	pong     byte    = 2
	goaway   byte    = 3
	absent   byte    = 4 // a frame was dropped, for there is no such service: its number follows
	gone     byte    = 5 // there is no such service any more: its number follows
	ack      byte    = 6 // so many frames to be acknowledged have come on this path
	railList byte    = 7 // the rails of this host
	railDown byte    = 8 // a pair of rails carries nothing: what is on it is to be closed
)

// padded returns the bytes of a frame.
func padded(payload int) int { return HeadSize + (payload+align-1)&^(align-1) }

// appendHead appends the head of a frame.
func appendHead(b []byte, s Service, stream uint32, size int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	return binary.BigEndian.AppendUint32(b, uint32(s)<<24|stream&0xffffff)
}

var zeros [align]byte

// appendFrame appends a frame whose payload is in two parts.
func appendFrame(b []byte, s Service, stream uint32, head, body []byte) []byte {
	n := len(head) + len(body)
	b = append(append(appendHead(b, s, stream, n), head...), body...)
	return append(b, zeros[:padded(n)-HeadSize-n]...)
}

// parse returns the first frame of b. Where it is not there in full, size is the bytes
// of it, or those of its head; ok says which.
func parse(b []byte, most int) (s Service, f Frame, size int, ok bool, err error) {
	if len(b) < HeadSize {
		return 0, Frame{}, HeadSize, false, nil
	}
	s, stream, n := parseHead(b)
	if s == segments {
		most += segmentMore
	}
	if n > most {
		return 0, Frame{}, 0, false, fmt.Errorf("%w: of %d bytes, want at most %d", ErrFrame, n, most)
	}
	size = padded(n)
	if len(b) < size {
		return 0, Frame{}, size, false, nil
	}
	return s, Frame{Stream: stream, Bytes: b[HeadSize : HeadSize+n : HeadSize+n]}, size, true, nil
}

// parseHead reads a frame's head; n is the bytes of the payload.
func parseHead(b []byte) (s Service, stream uint32, n int) {
	word := binary.BigEndian.Uint32(b[4:])
	return Service(word >> 24), word & 0xffffff, int(binary.BigEndian.Uint32(b))
}
