"""The wire contract of the broker, generated from `proto/broker/v1` by `make proto`."""

from lrms_sim.util.lazy_imports import load_protobuf_in_python_later

load_protobuf_in_python_later()
