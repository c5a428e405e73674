package p4rttest

import (
	"fmt"
	"math/big"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// checkEntry returns the table of an entry, or what is wrong with the entry. It
// is written without a look at package p4rt, whose encoding it is to judge.
func checkEntry(info *p4config.P4Info, e *p4v1.TableEntry, withAction bool) (*p4config.Table, error) {
	for _, table := range info.GetTables() {
		if table.GetPreamble().GetId() != e.GetTableId() {
			continue
		}
		if table.GetIsConstTable() {
			return nil, fmt.Errorf("table %s is immutable", table.GetPreamble().GetName())
		}
		if err := checkKey(table, e); err != nil {
			return nil, fmt.Errorf("table %s: %w", table.GetPreamble().GetName(), err)
		}
		if withAction {
			return table, checkAction(info, table, e.GetAction().GetAction())
		}
		return table, nil
	}
	return nil, fmt.Errorf("no table %s", hexadecimal(e.GetTableId()))
}

func checkKey(table *p4config.Table, e *p4v1.TableEntry) error {
	sent := make(map[uint32]*p4v1.FieldMatch)
	for _, m := range e.GetMatch() {
		if sent[m.GetFieldId()] != nil {
			return fmt.Errorf("field %d twice", m.GetFieldId())
		}
		sent[m.GetFieldId()] = m
	}
	ranked := false
	for _, f := range table.GetMatchFields() {
		m := sent[f.GetId()]
		delete(sent, f.GetId())
		var value []byte
		switch f.GetMatchType() {
		case p4config.MatchField_EXACT:
			if m == nil {
				return fmt.Errorf("field %s is missing", f.GetName())
			}
			value = m.GetExact().GetValue()
		case p4config.MatchField_LPM:
			if m == nil {
				continue
			}
			n := m.GetLpm().GetPrefixLen()
			value = m.GetLpm().GetValue()
			if n < 1 || n > f.GetBitwidth() || new(big.Int).SetBytes(value).TrailingZeroBits() < uint(f.GetBitwidth()-n) && new(big.Int).SetBytes(value).Sign() != 0 {
				return fmt.Errorf("field %s: %x is no prefix of %d bits", f.GetName(), value, n)
			}
		case p4config.MatchField_OPTIONAL:
			ranked = true
			if m == nil {
				continue
			}
			value = m.GetOptional().GetValue()
		default:
			return fmt.Errorf("field %s is of a kind that this target does not know", f.GetName())
		}
		if err := checkValue(value, f.GetBitwidth()); err != nil {
			return fmt.Errorf("field %s: %w", f.GetName(), err)
		}
	}
	if len(sent) > 0 {
		return fmt.Errorf("%d fields too many", len(sent))
	}
	if ranked != (e.GetPriority() > 0) {
		return fmt.Errorf("priority %d", e.GetPriority())
	}
	return nil
}

func checkAction(info *p4config.P4Info, table *p4config.Table, a *p4v1.Action) error {
	allowed := false
	for _, r := range table.GetActionRefs() {
		allowed = allowed || r.GetId() == a.GetActionId() && r.GetScope() != p4config.ActionRef_DEFAULT_ONLY
	}
	if !allowed {
		return fmt.Errorf("no action %s in table %s", hexadecimal(a.GetActionId()), table.GetPreamble().GetName())
	}
	for _, known := range info.GetActions() {
		if known.GetPreamble().GetId() != a.GetActionId() {
			continue
		}
		if len(known.GetParams()) != len(a.GetParams()) {
			return fmt.Errorf("action %s with %d parameters", known.GetPreamble().GetName(), len(a.GetParams()))
		}
		for i, p := range known.GetParams() {
			if a.GetParams()[i].GetParamId() != p.GetId() {
				return fmt.Errorf("action %s: parameter %d is not %s", known.GetPreamble().GetName(), i, p.GetName())
			}
			if err := checkValue(a.GetParams()[i].GetValue(), p.GetBitwidth()); err != nil {
				return fmt.Errorf("action %s: %s: %w", known.GetPreamble().GetName(), p.GetName(), err)
			}
		}
		return nil
	}
	return fmt.Errorf("no action %s", hexadecimal(a.GetActionId()))
}

// checkValue wants a number of P4Runtime's one form that fits a field.
func checkValue(value []byte, width int32) error {
	switch n := new(big.Int).SetBytes(value); {
	case len(value) == 0:
		return fmt.Errorf("no value")
	case len(value) > 1 && value[0] == 0:
		return fmt.Errorf("%x begins with a zero byte", value)
	case n.BitLen() > int(width):
		return fmt.Errorf("%x does not fit in %d bits", value, width)
	}
	return nil
}

func checkGroup(g *p4v1.MulticastGroupEntry, version string) error {
	if g.GetMulticastGroupId() == 0 {
		return fmt.Errorf("0 is not a valid group id")
	}
	type replica struct {
		port     string
		instance uint32
	}
	seen := make(map[replica]bool)
	for _, r := range g.GetReplicas() {
		id := replica{instance: r.GetInstance()}
		switch kind := r.GetPortKind().(type) {
		case *p4v1.Replica_EgressPort:
			id.port = fmt.Sprint(kind.EgressPort) //nolint:staticcheck // deprecated, and all that older targets know
		case *p4v1.Replica_Port:
			if version < "1.4" {
				return fmt.Errorf("a port as bytes, in version %s", version)
			}
			if err := checkValue(kind.Port, 32); err != nil {
				return err
			}
			id.port = string(kind.Port)
		default:
			return fmt.Errorf("missing port in multicast group replica")
		}
		if seen[id] {
			return fmt.Errorf("duplicate replica in multicast group")
		}
		seen[id] = true
	}
	return nil
}
