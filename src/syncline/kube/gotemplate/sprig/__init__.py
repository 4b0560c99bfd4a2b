"""The functions of sprig 3.3.0 for Go templates, by theme; ``library.py`` joins them."""
