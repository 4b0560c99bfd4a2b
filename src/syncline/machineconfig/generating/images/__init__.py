"""Generates MachineConfigs with the registries of every machine from the cluster's image configuration and mirrors."""
