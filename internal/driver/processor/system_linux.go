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

// tick is the unit of /proc/stat: USER_HZ is 100 wherever Linux reports it.
const tick = 10 * time.Millisecond

// Read returns what this machine's processors have spent on average.
func Read() (Time, error) {
	mean, _, err := read()
	return mean, err
}

// ReadSum returns what this machine's processors have spent together.
func ReadSum() (Sum, error) {
	_, sum, err := read()
	return sum, err
}

func read() (Time, Sum, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return Time{}, Sum{}, fmt.Errorf("processor: %w", err)
	}
	mean, sum, err := parse(f)
	return mean, sum, errors.Join(err, f.Close())
}

// maxTicks is the most that a Duration can report.
const maxTicks = uint64(math.MaxInt64 / tick)

// parse reads /proc/stat (proc(5)): the line of all processors, and how many lines
// there are of single ones:
//
//	cpu   user nice system idle iowait irq softirq steal guest guest_nice
//	cpu0  ...
//
// Guests' time is in user and nice already. What was stolen by other machines on
// the same hardware counts as busy: it cannot be had.
func parse(r io.Reader) (mean Time, sum Sum, err error) {
	var n [8]uint64 // ticks; of 56 bits, so that they can be added
	var processors uint64
	found := false
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // the line of interrupts is long
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) <= len(n) || !strings.HasPrefix(fields[0], "cpu"):
		case fields[0] != "cpu":
			processors++
		default:
			found = true
			for i := range n {
				if n[i], err = strconv.ParseUint(fields[i+1], 10, 56); err != nil {
					return Time{}, Sum{}, fmt.Errorf("%w: %w", ErrFormat, err)
				}
			}
		}
	}
	processors = max(processors, 1)
	idle := n[3] + n[4]
	busy := n[0] + n[1] + n[2] + n[5] + n[6] + n[7]
	total := (busy + idle) / processors
	if err := lines.Err(); err != nil || !found || total > maxTicks {
		return Time{}, Sum{}, fmt.Errorf("%w: /proc/stat has no line of all processors, or more time than there can be: %w", ErrFormat, errors.Join(err, io.ErrUnexpectedEOF))
	}
	mean = Time{Busy: duration(busy / processors), Total: duration(total)}
	sum = Sum{
		User: duration(n[0] + n[1]), System: duration(n[2]), Soft: duration(n[6]),
		Hard: duration(n[5]), Idle: duration(idle), Stolen: duration(n[7]),
	}
	return mean, sum, nil
}

func duration(ticks uint64) time.Duration { return time.Duration(ticks) * tick }
