"""From ContainerRuntimeConfig objects and registry rules to files of the container runtime."""
