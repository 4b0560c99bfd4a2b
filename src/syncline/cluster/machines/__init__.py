"""Simulated machines: power, disks, containers, and the kubelet that runs pods on them."""
