"""What rule bases within rails were asked in a replay, and what they said.

The rails decide first. What is left for the rules is known to the kernel alone, so the replay is run
once more with rules that write down what they are asked. It is some times slower, and decides alike.
"""

from collections.abc import Mapping

import numpy as np

from grms.federation.federation import Federation
from grms.learning.rule_bases.visits import Visits
from grms.policy._decisions import CompiledTransfer, TransferQuestion
from grms.policy.rails import Rails
from grms.policy.transfer import RuleBase

_Noted = tuple[float, float, bool, bool, float]


def recorded_decisions(
    federation: Federation, rule_bases: Mapping[tuple[str, str], RuleBase], rails: Rails
) -> dict[str, Visits]:
    """Returns what rule bases decide in a replay, by site."""
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

        return CompiledTransfer.written(answer).railed(rails.compiled)

    federation.awrt({pair: recording(pair[0], one) for pair, one in rule_bases.items()})
    return {site: _visits(notes) for site, notes in noted.items()}


def _visits(notes: list[_Noted]) -> Visits:
    columns = list(zip(*notes, strict=True)) or [()] * 5
    return Visits(
        np.array(columns[0], np.float64),
        np.array(columns[1], np.float64),
        np.array(columns[2], np.bool_),
        np.array(columns[3], np.bool_),
        0,
        np.array(columns[4], np.float64),
    )
