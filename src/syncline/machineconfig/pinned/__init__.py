"""Images that a pool's machines fetch beforehand and keep, whatever their disk lacks."""
