package scaling

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Plot writes plots as SVG into a directory: latency.svg (of vectors of 8 bytes), bandwidth.svg (of longer ones) and
// reproduction.svg (of the namespace table), those for which r has rows.
func (r *Report) Plot(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, one := range []struct {
		name string
		make func() (*plot.Plot, error)
	}{{"latency", r.latency}, {"bandwidth", r.bandwidth}, {"reproduction", r.reproduction}} {
		p, err := one.make()
		if err != nil {
			return fmt.Errorf("plot %s: %w", one.name, err)
		}
		if p == nil {
			continue
		}
		if err := p.Save(18*vg.Centimeter, 12*vg.Centimeter, filepath.Join(dir, one.name+".svg")); err != nil {
			return fmt.Errorf("plot %s: %w", one.name, err)
		}
	}
	return nil
}

var colours = []color.Color{
	color.RGBA{0x1f, 0x77, 0xb4, 0xff}, color.RGBA{0xd6, 0x27, 0x28, 0xff}, color.RGBA{0x2c, 0xa0, 0x2c, 0xff},
	color.RGBA{0x94, 0x67, 0xbd, 0xff}, color.RGBA{0x7f, 0x7f, 0x7f, 0xff},
	color.RGBA{0xff, 0x7f, 0x0e, 0xff},
}

// line is a series of points with a name.
type line struct {
	name   string
	points plotter.XYs
	dashed bool
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.BackgroundColor = color.White
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.TextStyle.Font.Size = vg.Points(2), 10
	p.Add(plotter.NewGrid())
	return p
}

func addLines(p *plot.Plot, lines []line) error {
	for i, l := range lines {
		if len(l.points) == 0 {
			continue
		}
		series, marks, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		c := colours[i%len(colours)]
		series.Color, marks.Color, marks.Shape = c, c, draw.CircleGlyph{}
		if l.dashed {
			series.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(series, marks)
		p.Legend.Add(l.name, series, marks)
	}
	return nil
}

// logarithmic has an axis with the ticks of what is on it, and room for the labels of the first and last.
func logarithmic(a *plot.Axis, ticks []plot.Tick) {
	slices.SortFunc(ticks, func(a, b plot.Tick) int { return cmp.Compare(a.Value, b.Value) })
	a.Min, a.Max = min(a.Min, ticks[0].Value/1.5), max(a.Max, ticks[len(ticks)-1].Value*1.5)
	a.Scale, a.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(slices.Compact(ticks))
}

// latency shows the smallest vectors by the number of hosts.
func (r *Report) latency() (*plot.Plot, error) {
	p := newPlot("Allreduce of 8 bytes, 100 Gbit/s, cut-through", "number of hosts", "time in us")
	var lines []line
	for _, ends := range []string{Cards, Sockets} {
		tree, hosts := line{name: ends + ": tree of switches"}, line{name: ends + ": best algorithm of hosts", dashed: true}
		for _, row := range r.Rows {
			if row.Ends == ends && row.Bytes == 8 && row.Rate == 100e9 {
				tree.points = append(tree.points, plotter.XY{X: float64(row.Hosts), Y: row.CutThrough.Seconds() * 1e6})
				hosts.points = append(hosts.points, plotter.XY{X: float64(row.Hosts), Y: row.HostTime.Seconds() * 1e6})
			}
		}
		lines = append(lines, tree, hosts)
	}
	if len(lines[0].points) == 0 {
		return nil, nil
	}
	var ticks []plot.Tick
	for _, row := range r.Rows {
		ticks = append(ticks, plot.Tick{Value: float64(row.Hosts), Label: fmt.Sprint(row.Hosts)})
	}
	logarithmic(&p.X, ticks)
	p.Y.Min, p.Y.Max = 1, 1000 // above 100, the legend
	logarithmic(&p.Y, []plot.Tick{{Value: 1, Label: "1"}, {Value: 3, Label: "3"}, {Value: 10, Label: "10"}, {Value: 30, Label: "30"}, {Value: 100, Label: "100"}})
	if err := addLines(p, lines); err != nil {
		return nil, err
	}
	for i, name := range []string{"SHARP, published (Switch-IB 2)", "algorithm of hosts, published beside it"} {
		y := r.Published[0].BySharp
		if i > 0 {
			y = r.Published[0].ByHosts
		}
		s, err := plotter.NewScatter(plotter.XYs{{X: 128, Y: y.Seconds() * 1e6}})
		if err != nil {
			return nil, err
		}
		s.Shape, s.Radius = []draw.GlyphDrawer{draw.TriangleGlyph{}, draw.BoxGlyph{}}[i], vg.Points(4)
		p.Add(s)
		p.Legend.Add(name, s)
	}
	return p, nil
}

func (r *Report) bandwidth() (*plot.Plot, error) {
	hosts := 0
	for _, row := range r.Rows {
		hosts = max(hosts, row.Hosts)
	}
	p := newPlot(fmt.Sprintf("Bandwidth of an allreduce over %d hosts, cut-through", hosts), "size of the vector", "share of a link's rate")
	var lines []line
	for _, ends := range []string{Cards, Sockets} {
		for _, rate := range []int64{100e9, 400e9} {
			tree, best := line{name: fmt.Sprintf("%s, %s: tree of switches", ends, rated(rate))}, line{name: fmt.Sprintf("%s, %s: best algorithm of hosts", ends, rated(rate)), dashed: true}
			for _, row := range r.Rows {
				if row.Ends == ends && row.Rate == rate && row.Hosts == hosts && row.Bytes > 1000 {
					tree.points = append(tree.points, plotter.XY{X: float64(row.Bytes), Y: share(row.Bytes, row.CutThrough, rate)})
					best.points = append(best.points, plotter.XY{X: float64(row.Bytes), Y: share(row.Bytes, row.HostTime, rate)})
				}
			}
			if lines = append(lines, tree); ends == Cards {
				lines = append(lines, best)
			}
		}
	}
	var sizes []plot.Tick
	for _, row := range r.Rows {
		if row.Bytes > 1000 {
			sizes = append(sizes, plot.Tick{Value: float64(row.Bytes), Label: sized(row.Bytes)})
		}
	}
	if len(sizes) == 0 {
		return nil, nil
	}
	logarithmic(&p.X, sizes)
	p.Y.Min, p.Y.Max = 0, 1.5 // the upper third for the legend
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.25, Label: "0.25"}, {Value: 0.5, Label: "0.50"}, {Value: 0.75, Label: "0.75"}, {Value: 1, Label: "1"}}
	if err := addLines(p, lines); err != nil {
		return nil, err
	}
	sharp := plotter.NewFunction(func(float64) float64 { return SharpBandwidth })
	sharp.Dashes = []vg.Length{vg.Points(1), vg.Points(2)}
	p.Add(sharp)
	p.Legend.Add("SHARP, published (HDR, 200 Gbit/s)", sharp)
	return p, nil
}

func (r *Report) reproduction() (*plot.Plot, error) {
	p := newPlot("Allreduce in namespaces on two processors", "measured", "simulated")
	var points plotter.XYs
	low, high := math.Inf(1), 0.0
	for _, row := range r.Reproduction {
		x, y := row.Median.Seconds()*1e6, row.Simulated.Seconds()*1e6
		points = append(points, plotter.XY{X: x, Y: y})
		low, high = min(low, x, y), max(high, x, y)
	}
	if len(points) == 0 {
		return nil, nil
	}
	low, high = low/2, high*2
	for i, factor := range []float64{1, 1 + reproduceLimit, 1 - reproduceLimit} {
		f, err := plotter.NewLine(plotter.XYs{{X: low, Y: low * factor}, {X: high, Y: high * factor}})
		if err != nil {
			return nil, err
		}
		if f.Color = colours[4]; i > 0 {
			f.Dashes = []vg.Length{vg.Points(2), vg.Points(2)}
		}
		p.Add(f)
		if i == 1 {
			p.Legend.Add("15 % more or less than measured", f)
		}
	}
	s, err := plotter.NewScatter(points)
	if err != nil {
		return nil, err
	}
	s.Color, s.Shape, s.Radius = colours[1], draw.CircleGlyph{}, vg.Points(3)
	p.Add(s)
	p.Legend.Add("a size and rate of the table", s)
	var ticks []plot.Tick
	for e := math.Ceil(math.Log10(low)); e <= math.Log10(high); e++ {
		ticks = append(ticks, plot.Tick{Value: math.Pow(10, e), Label: time.Duration(math.Pow(10, e) * 1000).String()})
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Min, a.Max = low, high
		logarithmic(a, slices.Clone(ticks))
	}
	return p, nil
}
