"""Machine configs: the content of machines' disks, and when and in which order machines are updated."""
