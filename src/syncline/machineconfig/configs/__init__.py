"""MachineConfigs: parsing, comparison, extensions, and which changes a machine can take in place."""
