"""Catalogues: packages, channels and bundles as ``opm`` writes them in files (file-based catalogues)."""
