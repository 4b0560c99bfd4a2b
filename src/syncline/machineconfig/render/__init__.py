"""From many MachineConfigs to one for each pool."""
