"""From the cluster's image configuration and mirrors to MachineConfigs with the registries of every machine."""
