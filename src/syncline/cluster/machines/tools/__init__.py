"""A small ``oc`` and ``kubectl`` of our own, for hooks on machines that have none and for virtual time."""
