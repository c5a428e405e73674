package client

import (
	"path/filepath"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// TestTranscripts reports the stories of testdata.
func TestTranscripts(t *testing.T) {
	for name, story := range map[string]func(d *desk){
		"created": func(d *desk) {
			d.at(0, join(1, 0))
			d.at(1, isUp())
			d.at(2, reply(1, 7, nil))
			d.at(3, number(1, 7))
			d.at(4, links(7, 100e9), links(8, 1e9), offer(7, 0, 2))
			d.at(5, news(1, manager.Report{Entered: 2, Transport: manager.Offload}))
			d.at(6, withdrawal(7, 0, 2))
			d.at(7, news(1, manager.Report{Lost: 2, Silent: true, Reason: "silence"}))
			d.at(8, news(1, manager.Report{Demand: 16}))
			d.at(9, news(1, manager.Report{Entered: 3, Transport: manager.HostTree}))
			d.at(10, leave(1))
			d.at(11, reply(1, 7, nil))
		},
		"other-rank": func(d *desk) {
			d.at(0, join(1, 3))
			d.at(1, isUp())
			d.at(2, number(1, 7))
			d.at(3, notice(7, 3, manager.ErrNoTree, false), offer(8, 3, 2), offer(7, 2, 2))
			d.at(4, number(1, 9), offer(7, 3, 2))
			d.at(5, number(1, 0))
			d.at(6, number(1, 9))
			d.at(7, leave(1))
		},
		"manager-away": func(d *desk) {
			d.at(0, join(1, 0), join(2, 1))
			d.at(1, isDown(errGone))
			d.at(51)
			d.at(52, isDown(errGone))
			d.at(151, join(3, 0))
			d.at(152)
			d.at(153, isUp())
			d.at(154, reply(1, 7, nil), number(1, 7), number(2, 8), reply(3, 9, manager.ErrNotStored))
			d.at(204)
			d.at(205, news(1, manager.Report{Lost: 2, Reason: "silence"}))
			d.at(6000, isDown(errGone)) // it had worked for a while: a short pause
			d.at(6050)
			d.at(6051, isUp())
			d.at(6052, reply(1, 7, nil)) // it has the group, and hears of the loss again
		},
		"manager-lost-its-memory": func(d *desk) {
			d.at(0, join(1, 0), join(2, 1))
			d.at(1, isUp())
			d.at(2, reply(1, 7, nil), number(1, 7), number(2, 8))
			d.at(3, isDown(errGone))
			d.at(53)
			d.at(54, isUp())
			d.at(55, reply(1, 3, nil), notice(8, 1, manager.ErrUnknownGroup, true)) // number 7 is another's now
			d.at(56, number(1, 3))
			d.at(105)
			d.at(106, number(2, 4))
		},
		"numbers-are-exchanged": func(d *desk) { // of two communicators that others have created
			d.at(0, join(1, 1), join(2, 1), isUp(), number(1, 7), number(2, 8))
			d.at(1, isDown(errGone))
			d.at(51)
			d.at(52, isUp())
			d.at(53, number(2, 7))
			d.at(54, offer(7, 1, 2), news(1, manager.Report{Entered: 3}), news(2, manager.Report{Entered: 5}))
			d.at(55, number(1, 8))
			d.at(56, offer(7, 1, 4), offer(8, 1, 6))
			d.at(57, number(1, 7)) // late: of before
			d.at(58, isDown(errGone))
			d.at(158)
			d.at(159, isUp())
			d.at(160, number(1, 8))
			d.at(161, leave(2))
		},
		"number-comes-late": func(d *desk) { // that of a manager which has lost its memory since
			d.at(0, join(1, 0))
			d.at(1, isUp())
			d.at(2, reply(1, 7, nil))
			d.at(3, isDown(errGone))
			d.at(53)
			d.at(54, isUp())
			d.at(55, reply(1, 3, nil))
			d.at(56, number(1, 7)) // which may be another's
			d.at(57, number(1, 3))
		},
		"leaving-while-asking": func(d *desk) {
			d.at(0, join(1, 0), join(2, 0), join(3, 0), join(4, 0))
			d.at(1, isUp())
			d.at(2, reply(1, 7, nil), number(1, 7), reply(2, 8, nil))
			d.at(3, leave(2), leave(3), reply(2, 8, nil)) // the second has made a group of which nobody has heard
			d.at(4, reply(3, 9, nil), reply(4, 0, manager.ErrNotStored))
			d.at(5, reply(3, 9, nil), leave(4))
			d.at(6, isDown(errGone))
			d.at(56)
			d.at(57, isUp())
			d.at(58, leave(1)) // group 7 may be another's by now
			d.at(59, reply(1, 3, nil))
			d.at(60, reply(1, 3, nil))
		},
		"group-forgotten": func(d *desk) {
			d.at(0, join(1, 0))
			d.at(1, isUp())
			d.at(2, reply(1, 7, nil), number(1, 7))
			d.at(3, notice(7, 0, manager.ErrUnknownGroup, true))
			d.at(53)
			d.at(54, reply(1, 8, nil))
			d.at(55, number(1, 8))
		},
		"for-good": func(d *desk) {
			d.at(0, join(1, 0))
			d.at(1, Input{Kind: Down, Err: errGone, Final: true})
			d.at(60_000)
			d.at(60_001, join(2, 1))                                   // tries it again
			d.at(60_002, Input{Kind: Down, Err: errGone, Final: true}) // the new one hears of it, too
			d.at(60_003, join(3, 1))
			d.at(60_004, isUp())
		},
		"revoked": func(d *desk) {
			d.at(0, join(1, 0), join(2, 1), join(3, 0), join(4, 0), join(5, 1), join(6, 1), join(7, 1))
			d.at(1, over(6)) // before there is a connection
			d.at(2, isUp(), number(7, 9))
			d.at(3, reply(1, 7, nil), number(1, 7), number(2, 8), reply(3, 10, nil), number(5, 11))
			d.at(4, over(1), reply(1, 7, manager.ErrUnknownGroup)) // the manager has ended it by then
			d.at(5, over(2))
			d.at(6, over(3)) // nobody has heard of that group
			d.at(7, over(4), over(4))
			d.at(8, reply(4, 12, nil))
			d.at(9, reply(4, 12, nil))
			d.at(10, notice(11, 1, manager.ErrReleased, true), over(5)) // another member was first
			d.at(11, isDown(errGone), over(7))
			d.at(9000)
		},
		"revoked-number-of-two": func(d *desk) { // who has heard it before gets the place, and fails or not as the manager says
			d.at(0, join(1, 1), join(2, 1), isUp(), number(1, 7), number(2, 7))
			d.at(1, over(2))
			d.at(2, over(1))
		},
		"leaving": func(d *desk) {
			d.at(0, join(1, 0), join(2, 1), join(3, 0), join(4, 0))
			d.at(1, leave(2)) // before there is a connection
			d.at(2, isUp())
			d.at(3, reply(1, 7, nil), number(1, 7), reply(3, 8, nil), number(3, 8), reply(4, 9, nil), number(4, 9))
			d.at(4, leave(1), leave(3), news(3, manager.Report{Entered: 5}))
			d.at(5, reply(1, 7, manager.ErrUnknownGroup))
			d.at(2004) // the manager has not answered the other
			d.at(2005, leave(4))
			d.at(2006, isDown(errGone)) // and nobody needs it any more
			d.at(9000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, DefaultConfig())
			story(d)
			transcript.File(t, filepath.Join("testdata", name+".txt"), d.log.String())
		})
	}
}
