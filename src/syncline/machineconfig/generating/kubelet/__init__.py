"""Generates files of the kubelet from KubeletConfig objects."""
