"""From KubeletConfig objects to files of the kubelet."""
