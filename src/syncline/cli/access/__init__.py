"""What commands reach: clusters, repositories, files of this machine."""
