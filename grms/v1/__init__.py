"""The wire contract of a site, generated from `proto/grms/v1` by `make proto`."""

from grms.util.quick_protobuf import load_python_later

load_python_later()
