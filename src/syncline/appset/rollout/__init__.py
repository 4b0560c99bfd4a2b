"""RollingSync: which step an Application is in, how it moves through a rollout, and which syncs are started; pure."""
