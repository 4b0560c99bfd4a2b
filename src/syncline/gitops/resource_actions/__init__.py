"""Actions of users on one live object besides sync: restart, pause, scale, create a Job from a CronJob."""
