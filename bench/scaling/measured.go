package scaling

var measured = Costs{Taken: "x", Send: Cost{2948, 3, 0.06}, Receive: Cost{1000, 1, 0.0307}, Look: 2050, Wake: 2588, Cold: 5519, Aggregate: Cost{379, 84, 0.0072}, Session: Cost{124, 60, 0.042}, Reduce: 0.09}
