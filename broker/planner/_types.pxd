# The number types of the planner's kernels, in one place.
from libc.stdint cimport int32_t, uint64_t

from lrms_sim.kernel._types cimport seconds_t

ctypedef double money_t
ctypedef int32_t task_t          # row of the tasks that are to be planned
ctypedef int32_t workflow_t      # row of the workflows
ctypedef int32_t resource_t      # row of the resources
ctypedef int32_t units_t         # of a resource's capacity
ctypedef int32_t choice_t        # row of the distinct alternatives, fastest first
ctypedef uint64_t word_t         # 64 members of a set of choices
