"""Ansible's playbooks, run by ``ansible-core`` as a child process that is never imported (decision 54)."""
