"""The environments as Gymnasium wants them, one at a time and many together."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from hanse_gym import PickJobEnv, PickJobVectorEnv, PickOptions, Sequences
from lrms_sim.workload.jobs import JobTable

OPTIONS = PickOptions(window=8, backfill=True)


def sequences() -> Sequences:
    random = np.random.default_rng(11)
    run_time = np.ceil(random.lognormal(4.0, 1.5, 200))
    jobs = JobTable.from_columns(
        submit_time=np.floor(np.cumsum(random.exponential(40.0, 200))),
        processors=random.integers(1, 33, 200),
        run_time=run_time,
        requested_time=run_time * 2,
    )
    return Sequences(jobs, 64, 20)


@pytest.mark.parametrize(
    "options", [OPTIONS, PickOptions(window=8, commit=True, reward_at_end=True)]
)
def test_gymnasium_accepts_the_environment(options: PickOptions) -> None:
    check_env(PickJobEnv(sequences(), options), skip_render_check=True)


def test_a_seed_is_a_sequence_and_rows_can_be_named() -> None:
    env = PickJobEnv(sequences(), OPTIONS)
    first = env.reset(seed=5)[1]["first"]
    following = [env.reset()[1]["first"] for _ in range(20)]
    assert env.reset(seed=5)[1]["first"] == first
    assert [env.reset()[1]["first"] for _ in range(20)] == following
    assert len(set(following)) > 10
    assert env.reset(options={"first": 150})[1] == {"jobs": 1, "first": 150}
    with pytest.raises(ValueError, match="no 20 from row 181 on"):
        env.reset(options={"first": 181})


def test_the_mask_has_the_filled_places() -> None:
    env = PickJobEnv(sequences(), OPTIONS)
    seen, info = env.reset(seed=1)
    ended, most = False, 0
    while not ended:
        assert env.action_masks().tolist() == (seen[:, 0] == 1).tolist()
        assert int(env.action_masks().sum()) == info["jobs"]
        most = max(most, info["jobs"])
        seen, _, ended, _, info = env.step(np.int64(info["jobs"] - 1))
    assert most > 2
    assert info["jobs"] == 0
    assert not seen.any()
    with pytest.raises(RuntimeError, match="reset first"):
        env.step(0)


def test_many_machines_do_what_each_does_alone() -> None:
    vector = PickJobVectorEnv(sequences(), 3, OPTIONS)
    alone = [PickJobEnv(sequences(), OPTIONS) for _ in range(3)]
    seen, info = vector.reset(seed=9)
    expected = [env.reset(seed=9 + i)[0] for i, env in enumerate(alone)]
    np.testing.assert_array_equal(seen, expected)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    random = np.random.default_rng(1)
    ends = 0
    over = [False] * 3
    for _ in range(150):
        places = random.integers(0, 8, 3)
        seen, rewards, ended, truncated, info = vector.step(places)
        assert seen in vector.observation_space
        assert not truncated.any()
        for i, env in enumerate(alone):
            if over[i]:
                single, reward, over[i], jobs = env.reset()[0], 0.0, False, env.machine.jobs_seen
            else:
                single, reward, over[i], _, told = env.step(places[i])
                jobs = told["jobs"]
            np.testing.assert_array_equal(seen[i], single)
            assert (rewards[i], ended[i], info["jobs"][i]) == (reward, over[i], jobs)
        ends += int(ended.sum())
    assert ends > 6


def test_a_vector_refuses_what_is_impossible() -> None:
    with pytest.raises(ValueError, match="count is 0"):
        PickJobVectorEnv(sequences(), 0)
    vector = PickJobVectorEnv(sequences(), 2, OPTIONS)
    vector.reset(seed=[1, None])
    with pytest.raises(ValueError, match="1 seeds for 2 machines"):
        vector.reset(seed=[1])
    with pytest.raises(ValueError, match="not \\(2,\\)"):
        vector.step(np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="outside the window"):
        vector.step(np.array([0, 8]))
