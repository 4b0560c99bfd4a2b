"""What people may do with one live object besides syncing it: restart, pause, scale, create a Job from a CronJob."""
