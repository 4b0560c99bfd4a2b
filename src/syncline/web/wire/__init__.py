"""argocd's API on the wire: messages, calls, gRPC-Web, REST; no sockets. Begin at :mod:`syncline.web.wire.calls`."""
