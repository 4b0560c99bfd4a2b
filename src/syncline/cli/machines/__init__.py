"""Commands for MachineConfigs, pools, nodes and their agent."""
