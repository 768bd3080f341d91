# %% [markdown]
"""How long jobs wait under two disciplines, and what the machine does meanwhile."""

# %%
from matplotlib.figure import Figure

from lrms_sim import Easy, Fcfs, generate, simulate
from lrms_sim.report import plots

jobs = generate(64, jobs=500, load=0.7, seed=1)
schedules = {discipline.name: simulate(jobs, 64, discipline) for discipline in (Fcfs(), Easy())}
figure = Figure(figsize=(9, 9), layout="constrained")
upper, middle, lower = figure.subplots(3)
plots.wait_distribution(schedules, axes=upper)
plots.utilization(schedules["easy"], axes=middle)
plots.gantt(schedules["easy"][:150], axes=lower)
figure.savefig("waits.png")
