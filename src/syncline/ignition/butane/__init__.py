"""Butane: configurations that people write, translated into Ignition and MachineConfigs. Pure: local files are read
through a protocol that is handed in. Begin reading at ``ignition/butane/transpile.py``."""
