package scaling

// measured is the middle of five runs of collbench scaling measure within a quarter of an hour of 2026-11-28, of
// 9 to 15 rounds each, on a virtual machine with two processors, while other programs had a third to a half of them.
// docs/scaling.md has the range of each.
var measured = Costs{
	Taken:     "2026-11-28, 2 processors, Linux 6.18",
	Send:      Cost{Call: 2402, Packet: 2.101, Byte: 0.06667},
	Receive:   Cost{Call: 881, Packet: 0.8204, Byte: 0.02707},
	Look:      2020,
	Alone:     830,
	Wake:      2377,
	Cold:      3998,
	Aggregate: Cost{Call: 530, Packet: 102.2, Byte: 0.003268},
	Session:   Cost{Call: 101, Packet: 56.74, Byte: 0.05305},
	Reduce:    0.1156,
}
