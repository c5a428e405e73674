package zone
import "testing"
func TestZBoot(t *testing.T) {
	for _, n := range []int{2,5,32, 256, 2048} {
		for _, p := range []bool{false, true} {
		c:=DefaultConfig(n, 1)
		c.Proofs=p
		r, err := RunBoot(c)
		t.Logf("%d %v %+v %v", n, p, r, err)
		}
	}
}
func TestZRec(t *testing.T) {
	for _, n := range []int{4,33,128} {
		for _, p := range []bool{false, true} {
		c:=DefaultConfig(n, 1)
		c.Proofs=p
		a, err := RunChange(c)
		t.Logf("%d %v %+v %v", n, p, a, err)
		b, err := RunHalf(c, true)
		t.Logf("half %d %v %+v %v", n, p, b, err)
		b, err = RunPartition(c, 30e9)
		t.Logf("part %d %v %+v %v", n, p, b, err)
		b, err = RunFlap(c, 10)
		t.Logf("flap %d %v %+v %v", n, p, b, err)
		if n>30 {
		m, err := RunMonitor(c, 4, false)
		t.Logf("mon %d %v %+v %v", n, p, m, err)
		m, err = RunMonitor(c, 4, true)
		t.Logf("mon silent %d %v %+v %v", n, p, m, err)
		}
		}
	}
}
