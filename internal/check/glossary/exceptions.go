package glossary

// exceptions are the files, and folders with a slash at their end, in which old
// words may still stand, each with the reason. The test's log names those that are
// not needed any more.
var exceptions = map[string]string{
	"docs/glossary.md":                             "names the words",
	"internal/check/glossary/":                     "names the words",
	"CHANGELOG.md":                                 "says what releases were about, in their words",
	"internal/driver/dataplane/pipeline/counts.go": "names of the P4 program",
	"p4/": "names of the program are in P4Info, its JSON and on switches: they change with the program",
}
