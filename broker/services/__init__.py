"""The daemon's services, and the plan over MQTT."""
