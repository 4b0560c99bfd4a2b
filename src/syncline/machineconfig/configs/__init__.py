"""MachineConfigs: reading, comparing, extensions, and which changes a machine can take on."""
