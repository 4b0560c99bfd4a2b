"""How the controllers read sources."""
