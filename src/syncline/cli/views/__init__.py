"""The output of commands: functions from values to text."""
