"""The wire contract of a site, generated from `proto/grms/v1` by `make proto`."""

from lrms_sim.util.lazy_imports import load_protobuf_in_python_later

load_protobuf_in_python_later()
