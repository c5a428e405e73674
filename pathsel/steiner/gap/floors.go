package gap

// floors has what every tree of a case costs at least, where Solve's own bound
// stays below that: in grids of equal costs. Each is the value, rounded up, of
// a linear programme of directed cuts (those of Wong's formulation, with the
// balance of flow at nodes that are no terminals), to which violated cuts were
// added until none was left or time was up; any of them proves its number. The
// solver was CBC 2.10. Where the programme's value meets the tree, the tree is
// optimal.
var floors = map[string]float64{
	"grid/c=1/t=50/0":  167,
	"grid/c=1/t=100/0": 234,
	"grid/c=1/t=100/1": 243,
	"grid/c=1/t=250/0": 372,
	"grid/c=1/t=250/1": 368,
	"grid/c=1/t=500/0": 561,
	"grid/c=1/t=500/1": 551,
}
