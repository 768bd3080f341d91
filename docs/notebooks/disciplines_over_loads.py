# %% [markdown]
"""Three disciplines over loads: mean bounded slowdown of five seeds with 95 % confidence."""

# %%
from lrms_sim import Easy, EasyPlusPlus, Fcfs, generate, mean_bounded_slowdown, simulate
from lrms_sim.analysis.samples import mean_interval

for load in (0.5, 0.7, 0.9):
    workloads = [generate(64, jobs=400, load=load, seed=seed) for seed in range(5)]
    for discipline in (Fcfs(), Easy(), EasyPlusPlus()):
        schedules = [simulate(jobs, 64, discipline) for jobs in workloads]
        mean, low, high = mean_interval([mean_bounded_slowdown(s) for s in schedules])
        print(f"{load:.1f}  {discipline.name:<16}{mean:8.1f}  [{low:.1f}, {high:.1f}]")
