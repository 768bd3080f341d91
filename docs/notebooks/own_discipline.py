# %% [markdown]
"""A queue discipline of one's own beside EASY."""

# %%
from lrms_sim import Easy, generate, mean_wait_time, simulate


def shortest_first(view):
    """Starts the shortest jobs that fit, and lets nobody pass one that does not."""
    for job in sorted(view.waiting, key=lambda job: job.requested_time):
        if job.processors > view.processors_free:
            break
        view.start(job)


jobs = generate(64, jobs=500, load=0.8, seed=1)
print({d: mean_wait_time(simulate(jobs, 64, d)) for d in (shortest_first, Easy())})
