"""Lock-step dialogue with one partner: nothing is lost, and no partner is away for good.

A coordinator moves the clocks of all sites together and restarts a daemon that has died, so a
message is repeated until it is answered. To the site's rules that is an answer like any other: they
know no replay, and each job goes where it would have gone.
"""

from typing import Final

from grms.site.model.commands import SendOffer, SendResolve, SendWithdraw
from grms.site.model.events import OfferFailed, StatusAnswered, StatusFailed
from grms.site.peers.sender import Sender, Told

PAUSE_S: Final = 0.5
"""Longest pause before a message is repeated, in seconds; at once if the partner comes up."""


class LockStepSender(Sender):
    """Sends to one partner until it has answered; see the module."""

    async def _offer(self, command: SendOffer) -> Told:
        while isinstance(told := await super()._offer(command), OfferFailed):
            if self._shares_too_little(command):
                break
            await self._link.pause(PAUSE_S)
        return told

    async def _ask(self, command: SendResolve | SendWithdraw) -> Told:
        while isinstance(told := await super()._ask(command), StatusFailed):
            await self._link.pause(PAUSE_S)
        unknown = isinstance(told, StatusAnswered) and told.status is None
        if unknown and isinstance(command, SendResolve):
            # One of the two has died before the offer was noted there: it is made as if for the first time.
            offer = self._engine.state.undecided_offer(command.partner, command.offer)
            if offer is not None:
                return await self._offer(offer)
        return told
