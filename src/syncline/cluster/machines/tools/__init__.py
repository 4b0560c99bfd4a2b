"""A small ``oc`` and ``kubectl`` of Syncline, for hooks on machines that have none and for virtual time."""
