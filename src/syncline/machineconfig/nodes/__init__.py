"""From config.openshift.io Node to MachineConfigs with what all nodes have in common."""
