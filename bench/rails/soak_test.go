package rails

import (
	"errors"
	"testing"
)

// TestAgree expects that hosts' last reports add up, and that what was lost or doubled shows.
func TestAgree(t *testing.T) {
	reports := func() []SoakReport {
		return []SoakReport{
			{Host: 0, Allreduces: 9, Broadcasts: 3, Ran: []uint64{3, 5}, Sent: 4, Arrived: 6},
			{Host: 1, Allreduces: 9, Broadcasts: 5, Ran: []uint64{3, 5}, Sent: 6, Arrived: 4},
		}
	}
	var sum SoakSum
	if sum.count(reports()); agree(reports()) != nil || sum.Allreduces != 9 || sum.Broadcasts != 8 || sum.Runs != 16 || sum.Messages != 10 {
		t.Errorf("%v: %v", &sum, agree(reports()))
	}
	for name, change := range map[string]func([]SoakReport){
		"an allreduce less": func(all []SoakReport) { all[1].Allreduces-- },
		"lost":              func(all []SoakReport) { all[1].Ran[0]-- },
		"a message":         func(all []SoakReport) { all[0].Arrived++ },
		"doubled":           func(all []SoakReport) { all[0].Ran[1]++ },
	} {
		all := reports()
		if change(all); !errors.Is(agree(all), ErrWrong) {
			t.Errorf("%s: %v", name, agree(all))
		}
	}
}
