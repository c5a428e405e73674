package picture

import "github.com/tributary-fabric/tributary/internal/whole/picture/cachedir"

// go-graphviz is initialised before this package, which imports it.
func init() { cachedir.Restore() }
