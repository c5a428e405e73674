package zone
import "testing"
import "time"
func TestZCost(t *testing.T) {
	for _, b := range []time.Duration{0,100e3, 400e3} {
		c:=DefaultConfig(512, 1)
		c.Proofs=true
		c.Cost.Birth=b
		w, took, err := start(c)
		t.Logf("%v %v %v births %d wants %d", b, took, err, w.Traffic.ByType[11],w.Traffic.ByType[10])
	}
}
