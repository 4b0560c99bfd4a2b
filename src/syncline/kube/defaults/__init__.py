"""Kubernetes' defaults for its built-in kinds; see :mod:`syncline.kube.defaults.fill`."""

from syncline.kube.defaults.fill import LABELLED_BY_TEMPLATE, STATUS_BY_SPEC, fill_defaults

__all__ = ["LABELLED_BY_TEMPLATE", "STATUS_BY_SPEC", "fill_defaults"]
