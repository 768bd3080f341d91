"""User-defined policies in a daemon: errors in one do not end the daemon.

A replay ends with the error of a policy, as its figures would be wrong. A daemon has jobs to
finish: it decides as if the policy had kept local jobs and taken no others, or had asked all
partners in their order, and logs the error.
"""

from collections.abc import Sequence
from typing import Any, Final

import structlog

from grms.policy._decisions import TransferQuestion
from grms.policy.location import PartnerRecord, UserDefinedLocation
from grms.policy.transfer import UserDefinedTransfer, yes_or_no

FAILURES_SAID_MAX: Final = 20
"""Most different failures of a policy that are logged, once each."""

LONGEST_FAILURE: Final = 500


class _Careful:
    """What both kinds have in common.

    Attributes:
        name: of the policy.
    """

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self._kind = kind
        self._said: set[str] = set()

    def _failed(self, error: BaseException) -> None:
        try:
            text = f"{type(error).__name__}: {error}"[:LONGEST_FAILURE]
        except Exception:  # noqa: BLE001  # the text of an error is the user's too
            text = type(error).__name__
        if text not in self._said and len(self._said) < FAILURES_SAID_MAX:
            self._said.add(text)
            log = structlog.get_logger()
            log.error("policy_failed", kind=self._kind, policy=self.name, error=text)


class CarefulTransfer(_Careful):
    """A transfer policy that keeps local jobs, and declines others', if it fails."""

    def __init__(self, policy: UserDefinedTransfer) -> None:
        super().__init__(policy.name, "transfer")
        self._accept: Any = getattr(policy.written, "accept", policy.written)

    def accept(self, question: TransferQuestion) -> bool:
        """Says whether the site wants to run the job itself."""
        try:
            return yes_or_no(self._accept(question), self.name)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a user's module may raise anything
            self._failed(error)
            return question.own


class CarefulLocation(_Careful):
    """A location policy that asks all partners in their order if it fails."""

    def __init__(self, policy: UserDefinedLocation) -> None:
        super().__init__(policy.name, "location")
        self._policy = policy

    def ask(self, partners: Sequence[PartnerRecord]) -> list[str]:
        """Says whom to ask, in order."""
        try:
            return self._policy.asking_order(partners)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # as above
            self._failed(error)
            return [partner.name for partner in partners]
