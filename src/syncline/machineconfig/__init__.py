"""Machine configs: what is on the disks of machines, when they are updated, and in which order."""
