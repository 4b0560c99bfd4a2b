"""Rendered content for clusters that do not reach repositories: rendered, cut and sealed on the hub."""
