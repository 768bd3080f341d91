"""Log, metrics, MQTT and dashboard, all fed by one subscriber."""
