"""How protobuf is loaded."""

import sys

from tests.programs import run_program


def test_protobuf_loads_no_implementation_that_is_not_in_force() -> None:
    """Where that in Python is, it is there as always."""
    program = "from grms.v1 import job_pb2; import sys; print('google.protobuf.internal.decoder' in sys.modules, job_pb2.Job(name='n').name)"
    for kind, loaded in (("upb", False), ("python", True)):
        done = run_program(
            [sys.executable, "-c", program],
            env={"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": kind, "PYTHONPATH": ":".join(sys.path)},
            check=True,
        )
        assert done.stdout == f"{loaded} n\n"
