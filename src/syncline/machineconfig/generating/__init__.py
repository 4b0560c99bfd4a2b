"""MachineConfigs that are made from other objects: their names, how they are written and taken back."""
