"""The environment of a transfer policy: as Gymnasium wants it, the same replay as any policy's, and blind to others."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.utils.env_checker import check_env

from grms.federation.federation import replay
from grms.federation.sites import Site
from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, TransferPolicy
from hanse_gym.transfer import Agent, TransferEnv, Windows, constant_agents, judged
from hanse_gym.transfer_bench import main
from lrms_sim.workload.jobs import JobTable


def jobs(seed: int, widest: int) -> JobTable:
    random = np.random.default_rng(seed)
    run_time = np.ceil(random.lognormal(4.0, 1.5, 200))
    return JobTable.from_columns(
        submit_time=np.floor(np.cumsum(random.exponential(30.0, 200))),
        processors=random.integers(1, widest, 200),
        run_time=run_time,
        requested_time=run_time * 2,
    )


def sites(policy: TransferPolicy, seed_of_b: int = 2) -> tuple[Site, ...]:
    return (
        Site("a", 32, jobs(1, 33), transfer_policies={"b": AcceptWhenFit()}),
        Site("b", 64, jobs(seed_of_b, 65), transfer_policies={"a": policy}),
    )


def environment(policy: TransferPolicy | None = None, seed_of_b: int = 2) -> TransferEnv:
    return TransferEnv(Windows(sites(policy or AcceptWhenFit(), seed_of_b), 1000.0), "a")


def played(env: TransferEnv, agent: Agent, start: float) -> tuple[list[list[float]], float]:
    """Returns all that an agent sees in a window, and the reward of the last step."""
    seen, _ = env.reset(options={"start": start})
    every, ended, reward = [seen.tolist()], False, 0.0
    while not ended:
        assert reward == 0.0
        seen, reward, ended, _, _ = env.step(agent(seen))
        every.append(seen.tolist())
    return every, reward


def test_gymnasium_accepts_the_environment() -> None:
    env = environment()
    check_env(env, skip_render_check=True)
    env.close()


def test_accept_when_fit_is_the_compiled_policy() -> None:
    env = environment()
    start = env.reset(seed=3)[1]["start"]
    expected = replay(env.windows.cut(start))
    every, reward = played(env, constant_agents()["accept-when-fit"], start)
    assert env.schedule is not None
    assert env.schedule.start_time.tolist() == expected.start_time.tolist()
    assert env.schedule.executed_on.tolist() == expected.executed_on.tolist()
    assert len(set(expected.executed_on.tolist())) == 2
    assert {row[0] for row in every} == {0.0, 1.0}
    (one,) = judged(env, constant_agents()["accept-when-fit"], [start])
    assert one.own == pytest.approx(1.0 - reward)
    assert one.worst > 0


def test_a_site_that_keeps_gains_and_loses_nothing() -> None:
    env = environment()
    for one in judged(env, constant_agents()["keep"], env.windows.fixed(3, seed=1)):
        assert (one.own, one.worst) == (1.0, 1.0)


def test_nothing_is_seen_of_a_partner_that_exchanges_nothing() -> None:
    """Whatever runs or waits there: a partner that keeps to itself, with other jobs, looks the same."""
    agent = constant_agents()["accept-when-fit"]
    seen = [played(environment(AlwaysKeep(), seed), agent, 1200.0) for seed in (2, 3)]
    assert seen[0] == seen[1]
    assert len(seen[0][0]) > 10


def test_what_a_site_notes_is_of_its_own_answers() -> None:
    env = environment()
    seen, _ = env.reset(seed=5)
    assert seen[6:].tolist() == [0.0, 0.0, 0.5]
    work = {(own, wanted): 0.0 for own in (0, 1) for wanted in (0, 1)}
    random, ended = np.random.default_rng(1), False
    while True:
        answer = int(random.integers(2))
        requested = np.expm1(float(seen[2]) * np.log1p(1e7))
        work[int(seen[0]), answer] += requested * float(seen[1])
        seen, _, ended, _, _ = env.step(answer)
        if ended:
            break
        if work[1, 0] + work[1, 1] > 0:
            assert seen[6] == pytest.approx(work[1, 0] / (work[1, 0] + work[1, 1]), rel=1e-3)
        if work[0, 0] + work[0, 1] > 0:
            assert seen[7] == pytest.approx(work[0, 1] / (work[0, 0] + work[0, 1]), rel=1e-3)
    with pytest.raises(RuntimeError, match="reset first"):
        env.step(1)


def test_what_is_impossible_is_refused() -> None:
    windows = environment().windows
    with pytest.raises(ValueError, match="must be one of a, b"):
        TransferEnv(windows, "c")
    with pytest.raises(ValueError, match="nobody to exchange"):
        TransferEnv(replace(windows, sites=windows.sites[:1]), "a")
    with pytest.raises(ValueError, match="a window of 1e\\+06 s is none of it"):
        replace(windows, seconds=1e6)
    env = TransferEnv(windows, "a")
    with pytest.raises(ValueError, match="is asked nothing"):
        env.reset(options={"start": 1e9})
    env.reset(seed=1)
    with pytest.raises(ValueError, match="action is 2"):
        env.step(2)
    env.close()


def test_the_command_has_the_constants() -> None:
    words = ["lublin-64", "lublin-32", "--days", "1", "--windows", "2"]
    table = CliRunner().invoke(main, words)
    assert table.exit_code == 0, table.output
    assert "accept-when-fit" in table.output
    document = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert document["sites"] == ["lublin-64", "lublin-32"]
    keep = document["results"][0]
    assert (keep["name"], keep["own"], keep["worst_partner"]) == ("keep", [1.0, 1.0], [1.0, 1.0])
    assert CliRunner().invoke(main, ["lublin-64"]).exit_code == 2
    twice = CliRunner().invoke(main, ["lublin-64", "lublin-64"])
    assert twice.exit_code == 1
    assert "lublin-64" in twice.output
