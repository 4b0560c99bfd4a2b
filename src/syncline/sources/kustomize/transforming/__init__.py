"""What a kustomization changes: generators, transformers, patches, replacements, names."""
