"""Gets what partners' jobs run, after they were accepted.

An offer says that there is a script, and not what it is: who declines never sees it.
"""

from typing import Final

import grpc
from grpc import aio

from grms.daemon.messages import WireError
from grms.site.model.jobs import OfferId
from grms.site.peers.peer import SenselessError, answer_to, stub_of
from grms.site.peers.peers import PeerClients
from grms.site.peers.pseudonyms import GuestOwners
from grms.site.runtime.executor_driver import ProgramAwayError, ProgramGoneError
from grms.site.wire.convert import read_request, write_offer
from grms.v1 import partner_pb2, request_pb2
from lrms_sim.util.messages import printable

TIMEOUT_S: Final = 20.0
"""For one attempt: a home site waits some seconds for the answer to its offer."""


class ProgramFetcher:
    """Asks home sites."""

    def __init__(self, links: PeerClients, site: str, owners: GuestOwners) -> None:
        self._links = links
        self._owners = owners
        self._site = site

    async def __call__(self, partner: str, key: str) -> bytes:
        """Returns what a job runs, as a payload.

        Raises:
            ProgramGoneError: it must not run here.
            ProgramAwayError: the program is not available yet.
        """
        try:
            stub = stub_of(self._links.links, partner)
        except ConnectionError as error:
            raise ProgramAwayError(str(error)) from error
        _, epoch, number = key.split("/")
        offer = write_offer(OfferId(int(epoch, 16), int(number)))
        request = partner_pb2.FetchProgramRequest(site=self._site, offer=offer)
        try:
            answer = await answer_to(stub.FetchProgram(request, timeout=TIMEOUT_S))
            wanted = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
            wanted.program.CopyFrom(answer.program)
            payload = read_request(wanted, "program")[1]
            await self._owners.take(partner, key, answer.owner, answer.user)
        except aio.AioRpcError as error:
            reason = f"{partner}: {printable(error.details() or '')[:200]}"
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise ProgramGoneError(reason) from error
            raise ProgramAwayError(reason) from error
        except WireError as error:
            raise ProgramGoneError(f"{partner}: {error}", unwanted=True) from error
        except (SenselessError, ConnectionError, OSError) as error:
            raise ProgramAwayError(f"{partner}: {printable(str(error))[:200]}") from error
        return payload
