"""sprig's functions of strings: cases, words, regular expressions, JSON, encodings, addresses, versions."""
