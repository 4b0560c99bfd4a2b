"""Why a pool, a node or a machine config is not where it should be, and what would help."""
