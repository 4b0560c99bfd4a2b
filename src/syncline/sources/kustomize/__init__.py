"""The Kustomize engine: a folder with a ``kustomization.yaml`` becomes manifests, without any binary."""
