"""Which operators race with one another: what one of them reads once, and another one makes."""
