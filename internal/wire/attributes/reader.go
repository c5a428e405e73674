package attributes

import "github.com/tributary-fabric/tributary/internal/wire/cursor"

// reader reads the fields that messages share.
type reader struct{ cursor.Cursor }

func (c *reader) life() Life { return Life(c.Uint64()) }
