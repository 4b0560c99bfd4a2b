"""MachineConfiguration: the effective node disruption policies, which agents read."""
