"""Installing a pattern as its operator does: what a ``Pattern`` object stands for, and in which order it comes."""
