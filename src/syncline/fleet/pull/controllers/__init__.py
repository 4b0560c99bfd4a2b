"""The controllers of the pull model, by what they are about."""
