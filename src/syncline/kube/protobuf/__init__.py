"""Protobuf messages as JSON values, by tables of fields; begin at :mod:`syncline.kube.protobuf.reading`."""
