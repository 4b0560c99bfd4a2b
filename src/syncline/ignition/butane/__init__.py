"""Butane: translates configurations that people write into Ignition and MachineConfigs. Pure: local files are read
through a protocol that the caller passes. Entry point: ``ignition/butane/transpile.py``."""
