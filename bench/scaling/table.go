package scaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrTable is wrapped by the errors of ReadTable.
var ErrTable = errors.New("scaling: no rows of allreduce over a tree")

// ReadTable reads the medians of the trees in what collbench peers writes as JSON.
func ReadTable(r io.Reader) (all []Timed, err error) {
	for d := json.NewDecoder(r); ; {
		var line struct {
			Kind, Collective string
			Bytes            int
			Strangers        float64
			Fabric           struct {
				Hosts int
				Rate  int64
			}
			Contestants []struct {
				Name   string
				Median float64 `json:"median_us"`
			}
		}
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTable, err)
		}
		if line.Kind != "comparison" || line.Fabric.Hosts != 8 || line.Collective != "" && line.Collective != "allreduce" {
			continue
		}
		for _, c := range line.Contestants {
			if c.Name == "tributary" && c.Median > 0 && line.Bytes >= 4 && line.Bytes%4 == 0 {
				all = append(all, Timed{line.Bytes, line.Fabric.Rate, time.Duration(c.Median * float64(time.Microsecond)), line.Strangers})
			}
		}
	}
	if len(all) == 0 {
		return nil, ErrTable
	}
	return all, nil
}
