"""Renders one MachineConfig per pool from many."""
