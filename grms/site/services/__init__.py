"""What the daemon answers: the services of `proto/grms/v1`."""
