"""Whether machines of the cluster are being updated, as the hub's order over clusters sees it."""
