package members

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/attribute"
	"github.com/tributary-fabric/tributary/internal/core/member"
	corezone "github.com/tributary-fabric/tributary/internal/core/zone"
	"github.com/tributary-fabric/tributary/internal/sim/zone"
)

// What the simulations are to reach, at the sizes of the table.
const (
	bootWithin     = 3 * time.Second
	killedWithin   = 30 * time.Millisecond
	equalWithin    = 10 * time.Second
	millionWithin  = 10 * time.Second
	leaveWithin    = 700 * time.Millisecond
	partitionLasts = 30 * time.Second
	flaps          = 20
	idleLasts      = 10 * time.Minute
	lossRate       = 0.1
	lossLasts      = time.Hour
	falseDeaths    = 1
	heavyLoss      = 0.3
	heavyLasts     = 10 * time.Minute
	impairedLasts  = time.Minute
	memoryBytes    = 256 << 10
	changes        = 10_000
	changesWithin  = 10 * time.Second
)

// sizes returns the sizes of zones up to the one that is asked for, doubling.
func sizes(from, most int) (all []int) {
	for n := from; n < most; n *= 2 {
		all = append(all, n)
	}
	return append(all, most)
}

func simulateBoot(_ context.Context, c Config, _ func(string)) ([]Row, error) {
	r, err := zone.RunBoot(c.zone(c.Nodes))
	if err != nil {
		return nil, err
	}
	return []Row{{
		Key: "boot", What: fmt.Sprintf("zone of %d boots: all views equal", c.Nodes), Asked: "<= " + brief(bootWithin),
		Measured: brief(r.Stable), Reached: r.Stable <= bootWithin,
		Figures: map[string]float64{"stable_ms": ms(r.Stable), "diameter": float64(r.Diameter), "log_kr_n": r.Log, "wall_ms": ms(r.Wall)},
		Notes:   []string{fmt.Sprintf("diameter of the overlay %d, log n to the base of Kr is %.1f", r.Diameter, r.Log)},
	}}, nil
}

func simulateChange(ctx context.Context, c Config, progress func(string)) ([]Row, error) {
	tau := zone.DefaultConfig(c.Nodes, c.Seed).Settings.Tau
	leave := Row{Key: "leave", What: "a leave is known everywhere", Asked: fmt.Sprintf("<= (eccentricity + 1) %v", tau), Reached: true, Figures: map[string]float64{}}
	join := Row{Key: "join", What: "a join is known everywhere", Asked: fmt.Sprintf("<= (eccentricity + 2) %v", tau), Reached: true, Figures: map[string]float64{}}
	for _, n := range sizes(32, c.Nodes) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := zone.RunChange(c.zone(n))
		if err != nil {
			return nil, err
		}
		progress(fmt.Sprintf("%d nodes: leave %s, join %s", n, brief(r.Leave), brief(r.Join)))
		for _, x := range []struct {
			row          *Row
			took, bound  time.Duration
			eccentricity int
		}{{&leave, r.Leave, r.LeaveBound, r.LeaveEccentricity}, {&join, r.Join, r.JoinBound, r.JoinEccentricity}} {
			x.row.Measured = fmt.Sprintf("%s of %s (eccentricity %d)", brief(x.took), brief(x.bound), x.eccentricity)
			x.row.Reached = x.row.Reached && x.took <= x.bound
			x.row.Figures[fmt.Sprintf("n%d_ms", n)], x.row.Figures[fmt.Sprintf("n%d_bound_ms", n)] = ms(x.took), ms(x.bound)
			x.row.Notes = append(x.row.Notes, fmt.Sprintf("%d nodes: %s, at most %s: eccentricity %d", n, brief(x.took), brief(x.bound), x.eccentricity))
		}
	}
	for _, row := range []*Row{&leave, &join} {
		row.What += fmt.Sprintf(", %d nodes", c.Nodes)
	}
	return []Row{leave, join}, nil
}

// simulateMonitor asks after the slowest notice over sizes and numbers of
// failures.
func simulateMonitor(ctx context.Context, c Config, progress func(string)) ([]Row, error) {
	var rows []Row
	for _, silent := range []bool{false, true} {
		row := Row{Key: "hpm-killed", What: "a monitor knows of killed processes", Asked: "<= " + brief(killedWithin), Reached: true, Figures: map[string]float64{}}
		if silent {
			row.Key, row.What = "hpm-silent", "a monitor knows of silent hosts"
		}
		var worst time.Duration
		for _, n := range sizes(32, c.Nodes) {
			for _, failures := range []int{1, 4, 16} {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				r, err := zone.RunMonitor(c.zone(n), failures, silent)
				if err != nil {
					return nil, err
				}
				bound := killedWithin
				if silent {
					bound = r.Bound
					row.Asked = "<= 3 heartbeats + 30 ms = " + brief(bound)
				}
				worst = max(worst, r.Notice)
				row.Reached = row.Reached && r.Notice <= bound
				row.Figures[fmt.Sprintf("n%d_failures%d_ms", n, failures)] = ms(r.Notice)
				note := fmt.Sprintf("%d of %d nodes: %s, %d messages at most for each", failures, n, brief(r.Notice), r.Messages)
				if r.Orphans > 0 {
					note += fmt.Sprintf("; %d whose neighbours all died, too: %s", r.Orphans, brief(r.OrphanNotice))
				}
				row.Notes = append(row.Notes, note)
				progress(row.Key + ": " + note)
			}
		}
		row.What += fmt.Sprintf(", 1 to 16 of 32 to %d", c.Nodes)
		row.Measured = brief(worst)
		rows = append(rows, row)
	}
	return rows, nil
}

func simulateMillion(_ context.Context, c Config, progress func(string)) ([]Row, error) {
	cfg := hierarchy.Million(c.Seed)
	cfg.Zone.Proofs = c.Proofs
	r, err := hierarchy.RunMillion(cfg, 6, progress)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d nodes (%d zones of %d): ", r.Nodes, r.Zones, r.Size)
	boot := Row{
		Key: "million-boot", What: what + "every supervisor has the census", Asked: "<= " + brief(millionWithin),
		Measured: brief(r.Boot), Reached: r.Boot <= millionWithin,
		Figures: map[string]float64{"boot_ms": ms(r.Boot), "base_ms": ms(r.Base), "management_ms": ms(r.Management), "nodes": float64(r.Nodes)},
		Notes:   []string{fmt.Sprintf("the real base zone alone %s, the management zone %s; a supervisor has %d to %d zones", brief(r.Base), brief(r.Management), r.Load[0], r.Load[1])},
	}
	leave := Row{Key: "million-leave", What: what + "a leave is known to all supervisors", Asked: "<= " + brief(leaveWithin), Reached: true, Figures: map[string]float64{}}
	var worst time.Duration
	for i, l := range r.Leaves {
		note := fmt.Sprintf("%v: a delegate after %s, its supervisors %s, all %s", l.How, brief(l.Delegate), brief(l.Supervisors), brief(l.Everywhere))
		leave.Notes = append(leave.Notes, note)
		leave.Figures[fmt.Sprintf("%d_%v_ms", i, l.How)] = ms(l.Everywhere)
		if l.How != hierarchy.Silent { // which takes the time to find out, too
			worst = max(worst, l.Everywhere)
		}
	}
	for _, x := range r.Replaced {
		leave.Notes = append(leave.Notes, fmt.Sprintf("replacing %s: %s", x.What, brief(x.Took)))
	}
	leave.Measured, leave.Reached = brief(worst), worst <= leaveWithin
	return []Row{boot, leave}, nil
}

func simulateFaults(ctx context.Context, c Config, progress func(string)) ([]Row, error) {
	var rows []Row
	for _, x := range []struct {
		key, what string
		run       func(zone.Config) (zone.RecoveryResult, error)
	}{
		{"half-killed", "half of the zone is killed at once", func(z zone.Config) (zone.RecoveryResult, error) { return zone.RunHalf(z, false) }},
		{"half-silent", "half of the zone falls silent at once", func(z zone.Config) (zone.RecoveryResult, error) { return zone.RunHalf(z, true) }},
		{"partition", fmt.Sprintf("a partition of %v heals", partitionLasts), func(z zone.Config) (zone.RecoveryResult, error) { return zone.RunPartition(z, partitionLasts) }},
		{"flap", "a node flaps every second", func(z zone.Config) (zone.RecoveryResult, error) { return zone.RunFlap(z, flaps) }},
	} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := x.run(c.zone(c.Nodes))
		if err != nil {
			return nil, err
		}
		progress(fmt.Sprintf("%s: equal after %s", x.key, brief(r.Equal)))
		rows = append(rows, Row{
			Key: x.key, What: x.what + ": all views equal", Asked: "<= " + brief(equalWithin), Measured: brief(r.Equal),
			Reached: r.Equal <= equalWithin, Figures: map[string]float64{"equal_ms": ms(r.Equal), "wall_ms": ms(r.Wall)},
		})
	}
	return rows, nil
}

// whole is a zone whose nodes have attributes, too, as those of services have.
func whole(c Config) zone.Config {
	cfg := c.zone(c.Nodes)
	cfg.Wrap = func(_ int, m *member.Core, _ core.Time) zone.Stepper {
		around, err := corezone.Around(m, attribute.DefaultConfig(0))
		if err != nil {
			panic(err) // the defaults are valid
		}
		return around
	}
	return cfg
}

func simulateIdle(_ context.Context, c Config, _ func(string)) ([]Row, error) {
	r, err := zone.RunIdle(whole(c), idleLasts)
	if err != nil {
		return nil, err
	}
	return []Row{{
		Key: "idle", What: fmt.Sprintf("%v of a stable zone of %d: messages beside heartbeats", idleLasts, c.Nodes), Asked: "none",
		Measured: fmt.Sprint(r.Packets + r.Frames), Reached: r.Packets+r.Frames == 0,
		Figures: map[string]float64{"datagrams": float64(r.Packets), "frames": float64(r.Frames), "heartbeats_per_node_and_second": r.BeatRate},
		Notes:   []string{fmt.Sprintf("%.1f heartbeats a node and second", r.BeatRate)},
	}}, nil
}

func simulateLoss(_ context.Context, c Config, progress func(string)) ([]Row, error) {
	var rows []Row
	for _, x := range []struct {
		key  string
		loss float64
		long time.Duration
	}{{"loss", lossRate, lossLasts}, {"loss-heavy", heavyLoss, heavyLasts}} {
		r, err := zone.RunLoss(c.zone(c.Nodes), x.loss, x.long, func(past time.Duration) {
			if past%(5*time.Minute) == 0 {
				progress(fmt.Sprintf("%v of %v", past, x.long))
			}
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{
			Key: x.key, What: fmt.Sprintf("%v with %.0f %% loss, %d nodes: false deaths", x.long, 100*x.loss, c.Nodes),
			Asked: fmt.Sprintf("<= %d", falseDeaths), Measured: fmt.Sprint(r.FalseDeaths), Reached: r.FalseDeaths <= falseDeaths,
			Figures: map[string]float64{
				"false_deaths": float64(r.FalseDeaths), "probes": float64(r.Probes), "heartbeats": float64(r.Beats), "events": float64(r.Events), "wall_ms": ms(r.Wall),
			},
		})
	}
	return rows, nil
}

// simulateImpaired has one node hear or say only a part.
func simulateImpaired(ctx context.Context, c Config, progress func(string)) ([]Row, error) {
	row := Row{
		Key: "impaired", What: fmt.Sprintf("a node of %d hears or says a part for %v: false leaves", c.Nodes, impairedLasts),
		Asked: "none", Reached: true, Figures: map[string]float64{},
	}
	worst := 0
	for _, x := range []struct {
		what string
		is   zone.Impairment
	}{
		{"no datagrams", zone.NoDatagrams}, {"hears no datagrams", zone.DeafToDatagrams}, {"sends no datagrams", zone.MuteInDatagrams},
		{"hears nothing", zone.DeafToDatagrams | zone.DeafToStreams},
	} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := zone.RunImpaired(c.zone(c.Nodes), x.is, impairedLasts)
		if err != nil {
			return nil, err
		}
		note := fmt.Sprintf("%s: %d false leaves; it left for %d others itself; %d datagrams and %d frames beside heartbeats", x.what, r.FalseLeaves, r.Lost, r.Probes, r.Frames)
		progress(note)
		row.Notes = append(row.Notes, note)
		row.Figures[fmt.Sprintf("impairment%d_false_leaves", x.is)] = float64(r.FalseLeaves)
		worst = max(worst, r.FalseLeaves)
	}
	row.Measured, row.Reached = fmt.Sprint(worst), worst == 0
	return []Row{row}, nil
}

func simulateMemory(_ context.Context, c Config, _ func(string)) ([]Row, error) {
	r, err := zone.RunMemory(whole(c))
	if err != nil {
		return nil, err
	}
	return []Row{{
		Key: "memory", What: fmt.Sprintf("memory a node in a view of %d", c.Nodes), Asked: fmt.Sprintf("<= %d KiB", memoryBytes>>10),
		Measured: fmt.Sprintf("%.0f KiB", float64(r.Bytes())/1024), Reached: r.Bytes() <= memoryBytes,
		Figures: map[string]float64{"bytes": float64(r.Bytes()), "cores_bytes": float64(r.Cores), "ids_bytes": float64(r.Directory)},
		Notes:   []string{fmt.Sprintf("view and attributes %.0f KiB, the IDs with their addresses %.0f KiB", float64(r.Cores)/1024, float64(r.Directory)/1024)},
	}}, nil
}

func simulateChurn(_ context.Context, c Config, progress func(string)) ([]Row, error) {
	r, err := zone.RunChurn(c.zone(c.Nodes), changes, changesWithin, func(done int) {
		if done%(changes/5) == 0 {
			progress(fmt.Sprintf("%d of %d leaves and joins", done, changes))
		}
	})
	if err != nil {
		return nil, err
	}
	return []Row{{
		Key: "churn", What: fmt.Sprintf("%d leaves and joins within %v, %d nodes: all views equal at the end", changes, changesWithin, c.Nodes),
		Asked: "equal", Measured: fmt.Sprintf("after %s; %s events/s", brief(r.Equal), thousands(r.EventsPerSec)), Reached: r.Changes == changes,
		Figures: map[string]float64{"equal_ms": ms(r.Equal), "events": float64(r.Events), "events_per_second": r.EventsPerSec, "wall_ms": ms(r.Wall)},
	}}, nil
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// thousands writes a number with a blank before each three digits.
func thousands(x float64) string {
	digits := fmt.Sprintf("%.0f", x)
	var parts []string
	for len(digits) > 3 {
		parts = append(parts, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	parts = append(parts, digits)
	slices.Reverse(parts)
	return strings.Join(parts, " ")
}
