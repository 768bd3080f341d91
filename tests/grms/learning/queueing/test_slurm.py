import numpy as np

from grms.learning.queueing.slurm import (
    AGE_WEIGHT,
    QOS_WEIGHT,
    USERS_SHOWN,
    qos_priorities,
    slurm_document,
    slurm_text,
    user_shares,
    users_csv,
)
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.workload.groups import user_groups
from tests.tuning_cases import busy_jobs

ORDER = GroupOrder((2, 1, 3, 4, 5))


def test_age_never_lets_a_job_pass_a_more_urgent_group() -> None:
    """The factor of a QOS is its priority over the largest; that of age is at most 1."""
    priorities = qos_priorities(ORDER)
    factors = [priorities[group] / max(priorities.values()) for group in ORDER.groups]
    steps = -np.diff(factors) * QOS_WEIGHT
    assert (steps > AGE_WEIGHT).all()
    assert sorted(priorities, key=priorities.__getitem__, reverse=True) == list(ORDER.groups)


def test_every_user_belongs_to_one_group() -> None:
    """All shares are 1 together; the groups are those of the jobs."""
    jobs = busy_jobs()
    groups = user_groups(jobs)
    users = user_shares(jobs, groups)
    assert {one.user for one in users} == set(jobs.user.tolist())
    assert abs(sum(one.share for one in users) - 1) < 1e-12
    of_user = dict(zip(jobs.user.tolist(), groups.tolist(), strict=True))
    assert all(of_user[one.user] == one.group for one in users)
    rows = users_csv(users).splitlines()
    assert len(rows) == len(users) + 1
    assert rows[1].startswith(f"{users[0].user},1,hanse-group1,")


def test_settings_say_what_to_type() -> None:
    """A QOS for each group, its heaviest users, and the weights that go together."""
    jobs = busy_jobs()
    users = user_shares(jobs, user_groups(jobs))
    text = slurm_text(ORDER, users, {"on unseen jobs": 12.4})
    assert "in the order 2 > 1 > 3 > 4 > 5" in text
    assert "on unseen jobs +12.40 %" in text
    assert "add qos hanse-group2 Priority=50" in text
    assert f"PriorityWeightQOS={QOS_WEIGHT}" in text
    for group in range(1, 6):
        mine = [one for one in users if one.group == group]
        shown = text.count(f"qos+=hanse-group{group} ")
        assert shown == min(len(mine), USERS_SHOWN)
    document = slurm_document(ORDER, users)
    assert document["PriorityWeightAge"] == AGE_WEIGHT
