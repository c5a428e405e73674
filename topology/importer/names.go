package importer

import (
	"strconv"
	"strings"
	"unicode"
)

// maxName leaves room in a node's name for what makes it unique.
const maxName = 200

// plainLetters spells letters with marks in plain ones.
var plainLetters = func() *strings.Replacer {
	var pairs []string
	for plain, marked := range map[string]string{
		"a": "àáâãäåāăą", "c": "çćč", "d": "ďđð", "e": "èéêëēęě", "g": "ğģ", "i": "ìíîïīı", "k": "ķ", "l": "ľļł", "n": "ñńňņ",
		"o": "òóôõöøőō", "r": "řŕ", "s": "śšşș", "t": "ťţțþ", "u": "ùúûüůűū", "y": "ýÿ", "z": "źžż", "ss": "ß", "ae": "æ", "oe": "œ",
	} {
		for _, letter := range marked {
			pairs = append(pairs, string(letter), plain, strings.ToUpper(string(letter)), strings.ToUpper(plain[:1])+plain[1:])
		}
	}
	return strings.NewReplacer(pairs...)
}()

// validName returns a label as a node's name: letters lose their marks, and what
// else a name may not have becomes a dash.
func validName(label string) string {
	var b strings.Builder
	dash := false
	for _, r := range plainLetters.Replace(label) {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			dash = false
			b.WriteRune(r)
		case b.Len() > 0 && strings.ContainsRune("._-/", r):
			dash = false
			b.WriteRune(r)
		case b.Len() > 0 && !dash:
			dash = true
			b.WriteByte('-')
		}
		if b.Len() >= maxName {
			break
		}
	}
	return strings.TrimRight(b.String(), "-")
}

// fabricName returns a text as a fabric's name, which is any that can be printed.
func fabricName(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(r rune) bool { return !unicode.IsPrint(r) }), " ")
	if len(text) > maxName {
		text = strings.ToValidUTF8(text[:maxName], "")
	}
	return text
}

// unique returns a name that taken does not have, and adds it: the name itself,
// or with a number behind it.
func unique(name string, taken map[string]bool) string {
	free := name
	for i := 2; taken[free]; i++ {
		free = name + "-" + strconv.Itoa(i)
	}
	taken[free] = true
	return free
}

// settleNames gives every node its name: its label where that can be one and is alone,
// else made from the label and the node's ID. Names that stand as they are come
// first, so that none of them is taken by one that was made.
func (d *draft) settleNames() {
	labels := make(map[string]int, len(d.nodes))
	for _, n := range d.nodes {
		labels[validName(n.label)]++
	}
	taken := make(map[string]bool, len(d.nodes))
	for i := range d.nodes {
		n := &d.nodes[i]
		if name := validName(n.label); name != "" && labels[name] == 1 {
			n.name, taken[name] = name, true
			if name != n.label {
				d.note(n.line, Changed, "name "+strconv.Quote(n.label), BadName, name)
			}
		}
	}
	for i := range d.nodes {
		n := &d.nodes[i]
		if n.name != "" {
			continue
		}
		name, suffix := validName(n.label), ""
		if id := validName(n.id); id != "" {
			suffix = "-" + id
		}
		if name == "" {
			n.name = unique("node"+suffix, taken)
			d.note(n.line, Assumed, "a name", NoName, n.name)
			continue
		}
		n.name = unique(name+suffix, taken)
		d.note(n.line, Changed, "name "+strconv.Quote(n.label), SameName, n.name)
	}
}
