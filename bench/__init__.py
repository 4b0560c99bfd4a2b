"""Figures of one machine: how fast the embedded cluster answers, beside the fastest that the machine allows."""
