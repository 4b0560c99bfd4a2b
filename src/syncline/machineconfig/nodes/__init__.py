"""Generates MachineConfigs with the settings of all nodes from config.openshift.io Node."""
