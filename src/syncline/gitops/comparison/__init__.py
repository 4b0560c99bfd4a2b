"""Pairs targets with live objects and compares them: differences, health, conditions."""
