"""Who may do what through the server, by Argo CD's own rules; begin at :mod:`syncline.argo.access.rights`."""
