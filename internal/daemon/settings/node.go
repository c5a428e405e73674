package settings

import "io"

// Node is the configuration of a process that is a node of a zone and nothing
// else.
type Node struct {
	Membership Membership // Name may be empty
	Admin      Admin
	Log        Log
}

// ReadNodeFile is ReadNode for the file at path.
func ReadNodeFile(path string) (*Node, error) { return readFile(path, ReadNode) }

// ReadNode reads a node's configuration: version, membership (whose name need not
// be there), admin and log. The name, usually the file's path, begins every error.
func ReadNode(r io.Reader, name string) (*Node, error) {
	return read(r, name, &Node{Log: Log{"info", "text"}}, func(d *reader, top field, n *Node) {
		d.object(top, map[string]func(field){
			"version": d.version, "membership": func(f field) { d.node(f, &n.Membership) },
			"admin": d.admin(&n.Admin), "log": d.log(&n.Log),
		}, "version!", "membership!")
	})
}

// unnamed stands for the name that a command gives.
const unnamed = "unnamed"

// node reads a place in a zone that may lack a name.
func (d *reader) node(f field, to *Membership) {
	to.Name = unnamed
	if d.membership(to)(f); to.Name == unnamed {
		to.Name = ""
	}
}
