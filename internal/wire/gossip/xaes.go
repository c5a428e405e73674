package gossip

import (
	"crypto/aes"
	"crypto/cipher"
)

// xaes is XAES-256-GCM (c2sp.org/XAES-256-GCM): AES-256-GCM by a key of its own for each half
// of a nonce of 24 bytes. Random nonces of GCM itself, of 12 bytes, are good for 2^32 packets of
// all nodes together that share a key, and no node can count those of the others; these are
// good for 2^80.
type xaes struct {
	block cipher.Block
	mask  [aes.BlockSize]byte
}

// newXAES takes a key of 32 bytes.
func newXAES(key []byte) *xaes {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	x := &xaes{block: block}
	// The first subkey of CMAC: twice the encrypted zero block, in the field of 2^128.
	block.Encrypt(x.mask[:], x.mask[:])
	var carry byte
	for i := len(x.mask) - 1; i >= 0; i-- {
		x.mask[i], carry = x.mask[i]<<1|carry, x.mask[i]>>7
	}
	x.mask[len(x.mask)-1] ^= carry * 0x87
	return x
}

// box returns what seals by a nonce's first half; its second half is the nonce to seal with.
func (x *xaes) box(nonce *[nonceSize]byte) cipher.AEAD {
	var key [2 * aes.BlockSize]byte
	for i := range 2 {
		part := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		copy(part, []byte{0, byte(i + 1), 'X', 0})
		copy(part[4:], nonce[:nonceSize/2])
		for j := range part {
			part[j] ^= x.mask[j]
		}
		x.block.Encrypt(part, part)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // a block of 16 bytes
	}
	return box
}

func (x *xaes) seal(to []byte, nonce *[nonceSize]byte, body, header []byte) []byte {
	return x.box(nonce).Seal(to, nonce[nonceSize/2:], body, header)
}

func (x *xaes) open(to []byte, nonce *[nonceSize]byte, body, header []byte) ([]byte, error) {
	return x.box(nonce).Open(to, nonce[nonceSize/2:], body, header)
}
