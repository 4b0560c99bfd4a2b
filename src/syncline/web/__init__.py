"""The server that speaks argocd's API; begin at :mod:`syncline.web.server`."""
