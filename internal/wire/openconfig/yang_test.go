package openconfig_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openconfig/goyang/pkg/yang"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// TestModule has goyang check the module tributary, and compares its leaves with the
// table's, in both directions.
func TestModule(t *testing.T) {
	const file = "../../../api/yang/tributary.yang"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	modules := yang.NewModules()
	if err := modules.Parse(string(source), file); err != nil {
		t.Fatal(err)
	}
	for _, err := range modules.Process() {
		t.Error(err)
	}
	module, errs := modules.GetModule("tributary")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	inModule := map[string]string{}
	collect(t, module, "", inModule)
	inTable := map[string]string{}
	for l := range openconfig.Schema() {
		if l.Modules[0] != "tributary" {
			continue
		}
		if i := slices.IndexFunc(l.Modules[1:], func(m string) bool { return m != "" }); i >= 0 {
			t.Errorf("%s is augmented", l.Path)
		}
		inTable[template(l.Path)] = described(l)
	}
	for at, is := range inModule {
		if inTable[at] != is {
			t.Errorf("%s: %s in the module, %s in the table", at, is, inTable[at])
		}
	}
	for at, is := range inTable {
		if inModule[at] == "" {
			t.Errorf("%s: %s in the table, nothing in the module", at, is)
		}
	}
}

// template is a path with the names of keys.
func template(p openconfig.Path) string { return strings.ReplaceAll(p.String(), "=]", "]") }

func described(l *openconfig.Leaf) string {
	kind := map[openconfig.Kind]string{
		openconfig.Bool: "boolean", openconfig.String: "string", openconfig.Strings: "list of string",
		openconfig.Uint: map[int]string{8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}[l.Bits],
	}[l.Kind]
	if l.Config {
		return "config " + kind
	}
	return kind
}

// collect adds the leaves below e, those aside that are keys of a list: they repeat what
// is in its state.
func collect(t *testing.T, e *yang.Entry, at string, into map[string]string) {
	for name, child := range e.Dir {
		path := at + "/" + name
		if child.IsList() {
			path += "[" + child.Key + "]"
		}
		switch {
		case child.Description == "":
			t.Errorf("%s has no description", path)
		case child.IsDir():
			collect(t, child, path, into)
		case e.IsList() && e.Key == name:
		default:
			is := child.Type.Kind.String()
			if child.IsLeafList() {
				is = "list of " + is
			}
			if !child.ReadOnly() {
				is = "config " + is
			}
			into[path] = is
		}
	}
}
