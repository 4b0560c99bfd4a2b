"""AnsibleConfigs: playbooks that the agents of a pool run as a part of their config."""
