package admission

// PickOldest has the oldest stranger give way.
func (l *Listener) PickOldest() { l.pick = func(int) int { return 0 } }
