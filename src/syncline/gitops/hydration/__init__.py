"""The source hydrator: renders dry sources into the branches that Applications sync from."""
