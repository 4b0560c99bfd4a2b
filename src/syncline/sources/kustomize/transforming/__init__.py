"""The transformations of a kustomization: generators, transformers, patches, replacements, names."""
