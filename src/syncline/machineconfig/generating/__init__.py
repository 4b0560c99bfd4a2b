"""MachineConfigs generated from other objects: their names, writes and removal."""
