"""AiiDA's scheduler for Slurm: `sbatch FILE`, `squeue -o`, `sacct --format=$(sacct --helpformat ...)`, `scancel`.

Its scheduler and its transport are called as its daemon does, which would need a database. It tells that a job is over, and of the
end that it was the limit.
"""

import os
from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, Told, here, told, until


def main() -> None:
    """Submits the jobs, cancels some, and tells what became of all."""
    plan = here()
    os.chdir(plan.folder)
    os.environ["AIIDA_PATH"] = str(plan.folder)
    slurm: Any = import_module("aiida.schedulers.plugins.slurm")
    local: Any = import_module("aiida.transports.plugins.local")
    data: Any = import_module("aiida.schedulers.datastructures")
    common: Any = import_module("aiida.common.datastructures")
    scheduler = slurm.SlurmScheduler()
    # A login shell would set another PATH.
    transport = local.LocalTransport(use_login_shell=False)
    scheduler.set_transport(transport)
    names: list[str] = []
    with transport:
        for number, kind in enumerate(KINDS):
            template = data.JobTemplate()
            template.shebang = "#!/bin/bash"
            template.job_name = f"aiida-{number}"
            template.sched_output_path = f"{number}.out"
            template.sched_error_path = f"{number}.err"
            template.max_wallclock_seconds = 60 * LIMIT_MIN.get(kind, LONG_MIN)
            template.job_resource = scheduler.create_job_resource(
                num_machines=1, num_mpiprocs_per_machine=1
            )
            code = data.JobTemplateCodeInfo()
            code.cmdline_params = plan.words(number)
            template.codes_info = [code]
            template.codes_run_mode = common.CodeRunMode.SERIAL
            script = plan.folder / f"{number}.sh"
            script.write_text(scheduler.get_submit_script(template))
            names.append(scheduler.submit_job(str(plan.folder), script.name))
    plan.until_killed()
    with transport:
        for number in plan.numbers("gone"):
            assert scheduler.kill_job(names[number])

    def are_over() -> bool:
        found = scheduler.get_jobs(jobs=names)
        return all(job.job_state is data.JobState.DONE for job in found)

    until(are_over)
    ends: dict[int, Told] = {}
    with transport:
        for number, name in enumerate(names):
            code = scheduler.parse_output(scheduler.get_detailed_job_info(name), "", "")
            told_over = code is not None and "WALLTIME" in str(code.message).upper()
            ends[number] = Told("OUT_OF_WALLTIME" if told_over else "DONE")
    told(ends)


if __name__ == "__main__":
    main()
