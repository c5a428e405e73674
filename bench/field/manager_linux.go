package field

// ManagerAddr returns where hosts reach the manager.
func (f *Fabric) ManagerAddr() string { return f.managerAddr() }
