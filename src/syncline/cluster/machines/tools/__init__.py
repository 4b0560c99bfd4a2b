"""Syncline's small ``oc`` and ``kubectl``, for hooks on machines without them and for virtual time."""
