"""Generates files of the container runtime from ContainerRuntimeConfig objects and registry rules."""
