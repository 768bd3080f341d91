"""The site's gRPC services: one module a service of `proto/grms/v1`."""
