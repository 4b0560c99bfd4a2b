"""Sockets of the server: one port for gRPC, gRPC-Web and REST; begin at :mod:`syncline.web.serving.port`."""
