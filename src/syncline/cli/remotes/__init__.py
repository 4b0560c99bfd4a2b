"""Commands for repositories and clusters."""
