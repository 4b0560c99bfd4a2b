"""Base MachineConfigs of the built-in pools, from the ControllerConfig."""
