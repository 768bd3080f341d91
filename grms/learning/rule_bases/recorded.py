"""What rule bases were asked in a replay, and what they said.

Rails decide first, where there are any. What is left for the rules is known to the kernel alone, so the replay is
run once more with rules that write down what they are asked. It is some times slower, and decides alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grms.federation.federation import Federation
from grms.policy._decisions import CompiledTransfer, TransferQuestion
from grms.policy.rails import Rails
from grms.policy.transfer import RuleBase

_Noted = tuple[float, float, bool, bool, float]


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """The decisions of one site, about its own jobs and about those offered to it, in their order.

    Attributes:
        nwp: shape (n,), normalized waiting parallelism at each decision (paper 003, equation 9).
        njp: shape (n,), normalized job parallelism, percent (equation 10).
        accepted: shape (n,), bool; what was decided.
        own: shape (n,), bool; False for a partner's offer.
        requested_time: shape (n,), seconds.
    """

    nwp: npt.NDArray[np.float64]
    njp: npt.NDArray[np.float64]
    accepted: npt.NDArray[np.bool_]
    own: npt.NDArray[np.bool_]
    requested_time: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.nwp)


def recorded_decisions(
    federation: Federation, rule_bases: Mapping[tuple[str, str], RuleBase], rails: Rails | None
) -> dict[str, Visits]:
    """Returns what rule bases decide in a replay, by site.

    Args:
        federation: sites, workloads, and the policies of all others.
        rule_bases: by site and partner.
        rails: what the rule bases decide within; None: nothing.
    """
    noted: dict[str, list[_Noted]] = {site: [] for site, _ in rule_bases}

    def recording(site: str, rule_base: RuleBase) -> CompiledTransfer:
        compiled, notes = rule_base.compiled, noted[site]

        def answer(asked: TransferQuestion) -> bool:
            nwp = asked.processors_waiting / asked.processors
            njp = 100.0 * asked.job_processors / asked.processors
            wanted = (
                compiled.output(
                    nwp, njp, requested_time=asked.requested_time, starts_now=asked.starts_now
                )
                > 0
            )
            notes.append((nwp, njp, wanted, asked.own, asked.requested_time))
            return wanted

        written = CompiledTransfer.written(answer)
        return written if rails is None else written.railed(rails.compiled)

    federation.awrt({pair: recording(pair[0], one) for pair, one in rule_bases.items()})
    return {site: _visits(notes) for site, notes in noted.items()}


def _visits(notes: list[_Noted]) -> Visits:
    columns = list(zip(*notes, strict=True)) or [()] * 5
    return Visits(
        np.array(columns[0], np.float64),
        np.array(columns[1], np.float64),
        np.array(columns[2], np.bool_),
        np.array(columns[3], np.bool_),
        np.array(columns[4], np.float64),
    )
