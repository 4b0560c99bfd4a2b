"""Go's text/template (1.26): parser, bounded execution, fmt, builtin functions. Begin with ``template.py``."""
