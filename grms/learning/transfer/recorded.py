"""The questions and answers of rule bases in a replay.

ExchangeConstraints decide first, if there are any. Only the kernel knows the questions left for the rules, so the
replay is repeated with rules that record them. It is slower, with the same decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grms.federation.federation import Federation
from grms.policy._decisions import CompiledTransfer, TransferQuestion
from grms.policy.constraints import ExchangeConstraints
from grms.policy.transfer import RuleBase

_Noted = tuple[float, float, bool, bool, float]


@dataclass(frozen=True, slots=True, eq=False)
class StateVisits:
    """The decisions of one site, about its own jobs and about offers, in order.

    Attributes:
        nwp: shape (n,), normalized waiting parallelism at each decision (paper 003, equation 9).
        njp: shape (n,), normalized job parallelism, percent (equation 10).
        accepted: shape (n,), bool; the decision.
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
    federation: Federation,
    rule_bases: Mapping[tuple[str, str], RuleBase],
    rails: ExchangeConstraints | None,
) -> dict[str, StateVisits]:
    """Returns the decisions of rule bases, by site and partner, in a replay, by site."""
    noted: dict[str, list[_Noted]] = {site: [] for site, _ in rule_bases}

    def recording(site: str, rule_base: RuleBase) -> CompiledTransfer:
        compiled, notes = rule_base.compiled, noted[site]

        def answer(asked: TransferQuestion) -> bool:
            nwp = asked.processors_waiting / asked.processors
            njp = 100.0 * asked.job_processors / asked.processors
            wanted = (
                compiled.output(
                    nwp,
                    njp,
                    requested_time=asked.requested_time,
                    memory_share=100.0 * asked.memory_share,
                    gpu_share=100.0 * asked.gpu_share,
                    dominant_share=100.0 * asked.dominant_share,
                    starts_now=asked.starts_now,
                )
                > 0
            )
            notes.append((nwp, njp, wanted, asked.own, asked.requested_time))
            return wanted

        written = CompiledTransfer.written(answer)
        return written if rails is None else written.constrained(rails.compiled)

    federation.awrt({pair: recording(pair[0], one) for pair, one in rule_bases.items()})
    return {site: _visits(notes) for site, notes in noted.items()}


def _visits(notes: list[_Noted]) -> StateVisits:
    columns = list(zip(*notes, strict=True)) or [()] * 5
    return StateVisits(
        np.array(columns[0], np.float64),
        np.array(columns[1], np.float64),
        np.array(columns[2], np.bool_),
        np.array(columns[3], np.bool_),
        np.array(columns[4], np.float64),
    )
