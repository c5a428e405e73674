package glossary

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Rule is one word or phrase that must not be used.
type Rule struct {
	Words []string // lower case, one after the other
	Say   string   // what to use instead
	In    []string // folders that the rule is for; none: all
}

// appliesTo reports whether the rule is for the file, a path within the repository.
func (r *Rule) appliesTo(file string) bool {
	return len(r.In) == 0 || slices.ContainsFunc(r.In, func(folder string) bool { return within(file, folder) })
}

func within(file, folder string) bool {
	return file == folder || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/")
}

// Rules reads the Not columns of a glossary's tables. In a row the first cell has
// the words to use, the last those that must not be used, in backquotes; " in "
// behind them names the folders that the last one is for.
func Rules(document io.Reader) ([]Rule, error) {
	var rules []Rule
	lines := bufio.NewScanner(document)
	for n := 1; lines.Scan(); n++ {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), "|")
		row := strings.HasPrefix(lines.Text(), "| ")
		if !row || strings.HasPrefix(lines.Text(), "| Term ") {
			continue
		}
		if len(cells) != 4 {
			// A row whose last cell is empty loses it to Trim.
			if len(cells) == 3 && strings.HasSuffix(lines.Text(), "| |") {
				continue
			}
			return nil, fmt.Errorf("line %d: %d cells, want term, who else, definition, not", n, len(cells))
		}
		of, err := parseNot(strings.TrimSpace(cells[3]), strings.TrimSpace(cells[0]))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		rules = append(rules, of...)
	}
	return rules, lines.Err()
}

var notWord = regexp.MustCompile("^`([a-zA-Z -]+)`(?: in ([a-zA-Z0-9/_.-]+(?:, [a-zA-Z0-9/_.-]+)*))?(?:, |$)")

// parseNot reads one cell of a Not column.
func parseNot(cell, say string) ([]Rule, error) {
	var rules []Rule
	for cell != "" {
		m := notWord.FindStringSubmatch(cell)
		if m == nil {
			return nil, fmt.Errorf("cannot read %q: want `word`, `word` in folder, folder", cell)
		}
		rule := Rule{Words: strings.Fields(strings.ToLower(strings.ReplaceAll(m[1], "-", " "))), Say: say}
		if m[2] != "" {
			rule.In = strings.Split(m[2], ", ")
		}
		rules = append(rules, rule)
		cell = cell[len(m[0]):]
	}
	return rules, nil
}

// A Finding is a word that must not be used.
type Finding struct {
	File string // within the repository
	Line int    // from 1
	Rule Rule
}

// String returns file:line and the words, the used and the right one.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %q: say %s", f.File, f.Line, strings.Join(f.Rule.Words, " "), f.Rule.Say)
}

// Check returns the findings of one file. A phrase is found within a line and
// over its end, comment signs between its words notwithstanding. The name of the
// file counts, too, as line 0.
func Check(file string, text []byte, rules []Rule) []Finding {
	var words []word
	base := path.Base(file)
	words = split(words, strings.TrimSuffix(base, path.Ext(base)), 0)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		words = split(words, line, number)
	}
	return find(file, words, rules)
}

// A word is one of a file, in lower case.
type word struct {
	text  string
	line  int
	apart bool // something other than spaces, a hyphen or nothing stands before it
}

func find(file string, words []word, rules []Rule) []Finding {
	by := map[string][]*Rule{}
	for i := range rules {
		if r := &rules[i]; r.appliesTo(file) {
			by[r.Words[0]] = append(by[r.Words[0]], r)
		}
	}
	var found []Finding
	for i, w := range words {
		for _, r := range by[w.text] {
			if matches(words[i:], r.Words) {
				found = append(found, Finding{File: file, Line: w.line, Rule: *r})
			}
		}
	}
	return found
}

func matches(words []word, phrase []string) bool {
	if len(words) < len(phrase) {
		return false
	}
	for i, p := range phrase {
		if words[i].text != p || i > 0 && words[i].apart {
			return false
		}
	}
	return true
}

// split appends the words of one line: runs of letters, cut where a capital
// begins a part of an identifier.
func split(words []word, line string, number int) []word {
	var (
		start = -1
		runes = []rune(line)
		apart bool
	)
	flush := func(end int) {
		if start >= 0 {
			words = append(words, word{text: strings.ToLower(string(runes[start:end])), line: number, apart: apart})
			start, apart = -1, false
		}
	}
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			flush(i)
			apart = apart || !unicode.IsSpace(r) && r != '-' && r != '_' && r != '/' && r != '#'
			continue
		}
		if start >= 0 && unicode.IsUpper(r) {
			lowerBefore := !unicode.IsUpper(runes[i-1])
			lowerAfter := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if lowerBefore || lowerAfter {
				flush(i)
			}
		}
		if start < 0 {
			start = i
		}
	}
	flush(len(runes))
	return words
}
