-- For Slurm's plugin job_submit/lua: holds jobs of `sbatch --comment=grid` before they can start, so that the watcher of
-- `grms serve` (lrms.watch.comment = "grid") finds every one of them. Put it beside slurm.conf and set
-- JobSubmitPlugins=lua. An error in here submits the job unchanged, and it may start before the watcher sees it.

local WORD = "grid"

function slurm_job_submit(job_desc, part_list, submit_uid)
   -- sbatch --hold has set the priority to 0: such a job is not to start anywhere.
   if job_desc.comment == WORD and job_desc.priority ~= 0 then
      job_desc.priority = 0
      job_desc.comment = WORD .. ":held"
      slurm.log_user("grid: this job may run at a partner site, with its script and without your environment")
      if job_desc.argc ~= nil and job_desc.argc > 1 then
         slurm.log_user("grid: it has arguments, which cannot be carried; it will stay here")
      end
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   return slurm.SUCCESS
end

slurm.log_info("grid: job_submit.lua is loaded")
return slurm.SUCCESS
