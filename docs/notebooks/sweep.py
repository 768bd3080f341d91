# %% [markdown]
"""Many disciplines on one workload, each in a process of its own."""

# %%
from concurrent.futures import ProcessPoolExecutor

from lrms_sim import generate
from lrms_sim.analysis.trial import Trial
from lrms_sim.scheduling.disciplines import DISCIPLINES

trial = Trial(generate(64, jobs=400, load=0.8, seed=1), 64)
with ProcessPoolExecutor(2) as pool:
    values = pool.map(trial.value, [make() for make in DISCIPLINES.values()])
    for name, value in zip(DISCIPLINES, values, strict=True):
        print(f"{name:<20}{value:14,.0f}")
