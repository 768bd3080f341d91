"""The broker's gRPC services, and the plan over MQTT."""
