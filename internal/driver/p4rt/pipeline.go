package p4rt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// Pipeline is a program as p4c makes it.
type Pipeline struct {
	P4Info string // in protobuf's text format
	Device []byte // what the target runs; for bmv2 its JSON
	// Order has the tables that are written, by id, in the order in which their
	// entries may be: none needs one of a later table. Entries are removed the
	// other way. Tables that are not in it come last, in P4Info's order.
	Order []uint32
}

// Validate reports what is wrong with p; the error wraps ErrProgram.
func (p Pipeline) Validate() error {
	schema, err := p.Schema()
	if err != nil {
		return err
	}
	if len(p.Device) == 0 {
		return fmt.Errorf("%w: no device configuration", ErrProgram)
	}
	return schema.matches(p.Device)
}

// Schema returns what the program has, by its P4Info.
func (p Pipeline) Schema() (*Schema, error) {
	info := new(p4config.P4Info)
	if err := prototext.Unmarshal([]byte(p.P4Info), info); err != nil {
		return nil, fmt.Errorf("%w: P4Info: %w", ErrProgram, err)
	}
	return NewSchema(info, p.Order)
}

// fingerprint is the upper half of the cookies of all pushes of a program.
func (p Pipeline) fingerprint() uint32 {
	hash := sha256.New()
	for _, file := range [][]byte{[]byte(p.P4Info), p.Device} {
		// The length keeps what ends one file from counting to the next.
		_ = binary.Write(hash, binary.BigEndian, uint64(len(file)))
		_, _ = hash.Write(file)
	}
	return binary.BigEndian.Uint32(hash.Sum(nil))
}

// cookie returns the cookie of one push, of which drawn is characteristic.
func (p Pipeline) cookie(drawn uint32) uint64 {
	return uint64(p.fingerprint())<<32 | uint64(drawn)
}

// matches reports whether a bmv2 JSON has the tables and actions of the P4Info:
// bmv2 takes a P4Info with the JSON of another program without a word. Other
// kinds of device configuration are not looked into.
func (s *Schema) matches(device []byte) error {
	type named struct {
		Name string `json:"name"`
	}
	var program struct {
		Pipelines []struct {
			Tables []named `json:"tables"`
		} `json:"pipelines"`
		Actions []named `json:"actions"`
	}
	if trimmed := bytes.TrimSpace(device); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil
	}
	if err := json.Unmarshal(device, &program); err != nil {
		return fmt.Errorf("%w: the device configuration begins as JSON and is none: %w", ErrProgram, err)
	}
	if program.Pipelines == nil {
		return nil
	}
	has := make(map[string]bool)
	for _, pipeline := range program.Pipelines {
		for _, table := range pipeline.Tables {
			has["table "+table.Name] = true
		}
	}
	for _, action := range program.Actions {
		has["action "+action.Name] = true
	}
	for _, t := range s.info.GetTables() {
		if name := t.GetPreamble().GetName(); !has["table "+name] {
			return fmt.Errorf("%w: the P4Info has a table %s and the JSON has none: they are of two programs", ErrProgram, name)
		}
	}
	for _, a := range s.info.GetActions() {
		if name := a.GetPreamble().GetName(); !has["action "+name] {
			return fmt.Errorf("%w: the P4Info has an action %s and the JSON has none: they are of two programs", ErrProgram, name)
		}
	}
	return nil
}

// holds reports whether what a target reports that it holds is this program.
// Targets need not report the device configuration.
func (p Pipeline) holds(info *p4config.P4Info, device []byte) error {
	want := new(p4config.P4Info)
	if err := prototext.Unmarshal([]byte(p.P4Info), want); err != nil {
		return fmt.Errorf("%w: P4Info: %w", ErrProgram, err)
	}
	switch {
	case !proto.Equal(want, info):
		return fmt.Errorf("%w: it reports another P4Info", ErrOtherPipeline)
	case len(device) > 0 && !bytes.Equal(device, p.Device):
		return fmt.Errorf("%w: it reports another device configuration", ErrOtherPipeline)
	}
	return nil
}
