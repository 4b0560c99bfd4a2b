"""The sync engine. Start at :mod:`syncline.gitops.sync.plan`, then read :mod:`syncline.gitops.sync.passes`."""
