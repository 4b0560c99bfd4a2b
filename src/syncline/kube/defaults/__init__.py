"""What Kubernetes fills into objects of its own kinds; see :mod:`syncline.kube.defaults.fill`."""

from syncline.kube.defaults.fill import fill_defaults, has_defaults

__all__ = ["fill_defaults", "has_defaults"]
