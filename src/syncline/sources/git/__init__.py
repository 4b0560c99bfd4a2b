"""Git without checkouts: mirrors, trees, submodules, large files, signatures."""
