package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// Version is the version of the schema that this package writes: the buckets, and
// the fields of records. A change of either is a new version. Stores of earlier
// ones from oldest on are made ones of this version when they are opened.
const Version = 7

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealSize is the digits and the space before a value's text.
const sealSize = 9

// seal returns a value: its checksum, and its text.
func seal(key, text []byte) []byte {
	return append(fmt.Appendf(make([]byte, 0, sealSize+len(text)), "%08x ", checksum(key, text)), text...)
}

func checksum(key, text []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, text)
}

// unseal returns the text of a value and its checksum.
func unseal(key, value []byte) (text []byte, sum uint32, err error) {
	if len(value) < sealSize {
		return nil, 0, fmt.Errorf("the value of %q is too short", key)
	}
	text = value[sealSize:]
	sum = checksum(key, text)
	if !bytes.Equal(value[:sealSize], fmt.Appendf(nil, "%08x ", sum)) {
		return nil, 0, fmt.Errorf("the checksum of %q is wrong", key)
	}
	return text, sum, nil
}

// digest is what there is of records, whatever their order.
type digest struct {
	Records int    `json:"records"`
	Sum     uint32 `json:"sum"` // their checksums, combined by exclusive or
}

func (d *digest) add(sum uint32) {
	d.Records++
	d.Sum ^= sum
}

func (d *digest) remove(sum uint32) {
	d.Records--
	d.Sum ^= sum
}

// keyOf returns the key of a record.
func keyOf(r *manager.Record) []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(r.Kind)}, r.Group)
}

// value is a record beside its key.
type value struct {
	Seq   uint64         `json:"seq"`
	Spec  *manager.Spec  `json:"spec,omitempty"`
	Trees *manager.Trees `json:"trees,omitempty"`
	Fleet *manager.Fleet `json:"fleet,omitempty"`
	Kept  []byte         `json:"kept,omitempty"`
}

// disclosed is a manager.Spec with its secret, which it hides from other encoders.
type disclosed struct {
	*manager.Spec
	Secret [32]byte
}

// encode returns the text of a record.
func encode(r *manager.Record) ([]byte, error) {
	if err := valid(r); err != nil {
		return nil, err
	}
	v := struct {
		value
		Spec *disclosed `json:"spec,omitempty"`
	}{value: value{Seq: r.Seq, Trees: r.Trees, Fleet: r.Fleet, Kept: r.Kept}}
	if r.Spec != nil {
		v.Spec = &disclosed{r.Spec, r.Spec.Secret}
	}
	return json.Marshal(v)
}

// parse reads a text into v, and returns what the key says of the record.
func parse(key, text []byte, v any) (r manager.Record, err error) {
	if len(key) != 5 {
		return r, fmt.Errorf("a record's key of %d bytes", len(key))
	}
	r.Kind, r.Group = manager.RecordKind(key[0]), binary.BigEndian.Uint32(key[1:])
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return r, d.Decode(v)
}

// decode returns the record of a key and a text.
func decode(key, text []byte) (r manager.Record, err error) {
	var v value
	if r, err = parse(key, text, &v); err != nil {
		return r, err
	}
	r.Seq, r.Spec, r.Trees, r.Fleet, r.Kept = v.Seq, v.Spec, v.Trees, v.Fleet, v.Kept
	return r, valid(&r)
}

var errRecord = errors.New("a record that is none")

// valid reports a record that has not the one value that its kind needs.
func valid(r *manager.Record) error {
	has := [...]bool{
		manager.SpecRecord: r.Spec != nil, manager.TreesRecord: r.Trees != nil, manager.FleetRecord: r.Fleet != nil,
		manager.OperatorRecord: r.Kept != nil, manager.MapRecord: r.Kept != nil, manager.HistoryRecord: r.Kept != nil,
	}
	values := 0
	for _, is := range []bool{r.Spec != nil, r.Trees != nil, r.Fleet != nil, r.Kept != nil} {
		if is {
			values++
		}
	}
	if int(r.Kind) < len(has) && has[r.Kind] && values == 1 {
		return nil
	}
	return fmt.Errorf("%w: number %d, kind %d, group %d", errRecord, r.Seq, r.Kind, r.Group)
}
