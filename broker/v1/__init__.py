"""The wire contract of the broker, generated from `proto/broker/v1` by `make proto`."""

from grms.util.quick_protobuf import load_python_later

load_python_later()
