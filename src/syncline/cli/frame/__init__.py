"""The frame of all commands: lookup, arguments, output and failures."""
