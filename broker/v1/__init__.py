"""The wire contract of the broker, generated from `proto/broker/v1` by `make proto`."""
