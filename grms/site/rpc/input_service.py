"""Takes files that programs are given, over gRPC, from users and from those who reserve."""

import grpc

from grms.daemon.messages import WireError
from grms.daemon.rpc_errors import Context, refuse
from grms.daemon.uploads import NoRoomError
from grms.site.gateway.admission import Admission
from grms.site.staging.stage_in import InputServer
from grms.site.wire.convert import read_input
from grms.v1 import job_pb2


async def taken(
    context: Context,
    admission: Admission,
    inputs: InputServer,
    owner: str,
    request: job_pb2.PutInputRequest,
) -> job_pb2.PutInputResponse:
    """Takes the next bytes of a file of its owner's; what cannot be taken ends the call."""
    await admission.check_stopping(context)
    file = read_input(request.file)
    try:
        held = await inputs.put(owner, file, request.offset_bytes, request.content)
    except NoRoomError as error:
        await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(error), retry_s=10.0)
    except ValueError as error:
        await admission.invalid(context, WireError("file", str(error)))
    except OSError as error:
        text = f"the file cannot be kept: {error.strerror or error}"
        await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text)
    return job_pb2.PutInputResponse(held_bytes=held)


async def look_at_inputs(
    context: Context,
    admission: Admission,
    inputs: InputServer,
    owner: str,
    payload: bytes,
    *,
    field: str,
) -> None:
    """Ends a call whose program is given a file that is not here; `field` is the program's in the request."""
    try:
        lacking = await inputs.lacking_of(owner, payload)
    except OSError as error:
        text = f"the files that jobs are given cannot be looked at: {error.strerror or error}"
        await refuse(context, grpc.StatusCode.UNAVAILABLE, text)
    if lacking:
        text = f"{lacking} is not here; it is handed over before the job that is given it"
        await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, text, field="inputs")
    if problem := await inputs.misplaced(payload):
        await admission.invalid(context, WireError(f"{field}.program.inputs", problem))
