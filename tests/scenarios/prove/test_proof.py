"""`scenario prove` as it is called: what it counts, writes and leaves, on simulated batch systems and on two real Slurms."""

from functools import partial
from pathlib import Path

import pytest

from scenarios.cli import prove_cli
from scenarios.cli.main import run_command
from scenarios.prove import checker
from scenarios.prove.picture import picture
from scenarios.prove.plan import Plan
from scenarios.prove.proof import Run
from scenarios.prove.result import BAD, KINDS, Proof, judged
from tests.clusters.slurm import need_slurm
from tests.examples import THOROUGH
from tests.scenarios.prove.processes import named_in_commands
from tests.schemas import printed

pytestmark = pytest.mark.usefixtures("forks")

QUICK = partial(
    Plan,
    kills=0,
    state_losses=0,
    links=0,
    hang_s=(1.6, 1.8),
    pause_s=(0.1, 0.2),
    patience_s=1,
    run_s=(0.1, 0.2),
    poll_s=0.2,
    settle_s=0.0,
    reoffer="1s",
)
"""Hangs for so long that a command gives up and is called again."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the command's faults few and short."""
    monkeypatch.setattr("scenarios.prove.plan.Plan", QUICK)


def proof_of(folder: Path) -> Proof:
    """Returns what a kept history shows."""
    return judged(QUICK(2), Run("two", folder / "history.jsonl", 1.0))


@pytest.mark.usefixtures("quick")
def test_two_simulated_batch_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By `sbatch` jobs run twice, by `grms submit --key` once; page, picture, history and JSON say so; nothing is left behind."""
    folder, page = tmp_path / "kept", tmp_path / "page.html"
    words = ["prove", "--simulated", "--hangs", "2", "--keep", str(folder), "--html", str(page)]
    assert run_command([*words, "--json"]) == 0
    found = printed("scenario-prove", capsys.readouterr().out)
    assert (found["holds"], found["faults"]) == (True, {"hang": 2})
    assert found["delegated"] >= 2  # those that were for the other site alone
    clients = {each["client"]: each for each in found["clients"]}
    assert clients["grms"]["kinds"] == {kind: 6 * (kind == "once") for kind in KINDS}
    assert clients["sbatch"]["kinds"]["twice"] >= 1
    assert clients["sbatch"]["runs"] > clients["grms"]["runs"] == 6
    assert {each["job"].partition("-")[0] for each in found["not_once"]} == {"sbatch"}
    assert named_in_commands(str(folder)) == []
    # The checker alone says the same of the history.
    assert checker.main(["--client", "grms", str(folder / "history.jsonl")]) == 0
    assert checker.main([str(folder / "history.jsonl")]) == 1
    capsys.readouterr()
    proof = proof_of(folder)
    assert proof.worst is not None
    text = page.read_text()
    assert text == (folder / "page.html").read_text()
    assert "Jobs that did not run once" in text
    assert text.count('<svg class="chart proof"') == 4
    assert (folder / "picture.svg").read_text() == picture(proof, proof.worst)
    prove_cli._print(proof, folder, None)  # it is what the command prints without --json
    lines = capsys.readouterr().out.splitlines()
    assert any("a controller hangs (SIGSTOP)" in line for line in lines)
    assert "by grms submit --key three." in " ".join(line.strip() for line in lines)
    # A folder with files is not written to.
    assert run_command([*words[:-2]]) == 2
    assert "has files" in capsys.readouterr().err


def test_two_real_slurms(tmp_path: Path) -> None:
    """Whose controllers hang, and in `make test-thorough` lose five seconds: nothing is lost or runs twice, and no process is left."""
    need_slurm()
    from scenarios.prove.proof import run  # noqa: PLC0415  # it imports gRPC, which not every test here needs

    plan = QUICK(2, state_losses=1, links=4, settle_s=6.0) if THOROUGH else QUICK(2)
    made = run(plan, "slurm", tmp_path, lambda *_: None)
    proof = judged(plan, made)
    assert "Slurm" in made.systems
    assert proof.holds, proof.jobs
    assert proof.kinds("grms").total() == (8 if THOROUGH else 6)
    assert proof.kinds("sbatch")["twice"] >= 1
    assert not any(proof.kinds("grms")[kind] for kind in BAD)
    assert named_in_commands(str(tmp_path)) == []
