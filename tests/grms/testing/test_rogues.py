"""Rogues are as bad as they are meant to be."""

from grms.testing.trial import ROGUES, Trial


def test_every_kind_of_rogue_does_its_harm() -> None:
    """Over some runs each is met; rubbish is a fault, lies are disbelieved, copies are noticed."""
    seen: dict[str, list[int]] = {manner: [0, 0, 0] for manner in [*ROGUES, ""]}
    for seed in range(150):
        verdict = Trial(seed).run()
        assert not verdict.problems, (seed, verdict.problems)
        for index, figure in enumerate((verdict.faults, verdict.disbelieved, verdict.epochs)):
            seen[verdict.rogue][index] += figure
    assert seen[""] == [0, 0, 0]
    assert seen["rubbish"][0] > 10
    assert seen["rubbish"][1:] == [0, 0]
    assert seen["liar"][1] > 0
    assert seen["liar"][0] == seen["liar"][2] == 0
    assert seen["put back"][2] > 0
