"""MachineConfiguration: the effective node disruption policies, where agents read them."""
