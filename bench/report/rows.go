package report

import (
	"encoding/json"
	"io"
)

// Rows takes rows as they are measured, for a table in the end; as JSON, each is written
// at once.
type Rows[R any] struct {
	Out  io.Writer
	JSON bool
	All  []R
}

// Add takes a row.
func (t *Rows[R]) Add(r R) error {
	t.All = append(t.All, r)
	if !t.JSON {
		return nil
	}
	return json.NewEncoder(t.Out).Encode(&r)
}
