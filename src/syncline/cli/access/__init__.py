"""Access of commands to clusters, repositories and files of this machine."""
