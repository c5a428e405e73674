package processor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// System returns the processors of this machine.
func System() Source { return system{} }

type system struct{}

// tick is the unit of /proc/stat: USER_HZ is 100 wherever Linux tells it.
const tick = 10 * time.Millisecond

// Read implements Source.
func (system) Read() (Time, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return Time{}, fmt.Errorf("processor: %w", err)
	}
	t, err := parse(f)
	return t, errors.Join(err, f.Close())
}

// maxTicks is the most that a Duration can tell.
const maxTicks = uint64(math.MaxInt64 / tick)

// parse reads /proc/stat (proc(5)): the line of all processors, and how many lines
// there are of single ones:
//
//	cpu   user nice system idle iowait irq softirq steal guest guest_nice
//	cpu0  ...
//
// Guests' time is in user and nice already. What was stolen by other machines on
// the same hardware counts as busy: it cannot be had.
func parse(r io.Reader) (Time, error) {
	var busy, total, processors uint64
	found := false
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // the line of interrupts is long
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu"):
		case fields[0] != "cpu":
			processors++
		default:
			found, busy, total = true, 0, 0
			for i, field := range fields[1:9] {
				ticks, err := strconv.ParseUint(field, 10, 56)
				if err != nil {
					return Time{}, fmt.Errorf("%w: %w", ErrFormat, err)
				}
				total += ticks
				if i != 3 && i != 4 {
					busy += ticks
				}
			}
		}
	}
	processors = max(processors, 1)
	busy, total = busy/processors, total/processors
	if err := lines.Err(); err != nil || !found || total > maxTicks {
		return Time{}, fmt.Errorf("%w: /proc/stat has no line of all processors, or more time than there can be: %w", ErrFormat, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return Time{Busy: time.Duration(busy) * tick, Total: time.Duration(total) * tick}, nil
}
