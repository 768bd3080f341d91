"""The wire contract of a site, generated from `proto/grms/v1` by `make proto`."""
