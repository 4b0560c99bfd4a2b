"""Questions about Applications that clusters pull: as data, and what the hub decides about them."""
