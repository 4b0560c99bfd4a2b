"""AnsibleConfigs on machines that are trees with namespaces of their own."""
