"""Where a pod may run: filters, resources, volumes, preemption."""
