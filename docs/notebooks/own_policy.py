# %% [markdown]
"""A transfer policy of one's own: two sites alone and together."""

# %%
from grms import Site, replay, replay_alone
from lrms_sim import awrt, generate


def threshold(question):
    """Wants a job while no more waits than half the machine."""
    return question.processors_waiting <= question.processors / 2


def site(name, size, other):
    """Returns a site that exchanges jobs with another."""
    jobs = generate(size, jobs=400, load=0.8, seed=size)
    return Site(name, size, jobs, transfer_policies={other: threshold})


sites = [site("north", 64, "south"), site("south", 128, "north")]
print([[awrt(run(sites), home) for home in (0, 1)] for run in (replay_alone, replay)])
