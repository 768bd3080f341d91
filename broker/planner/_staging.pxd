# When the files of a task can be at each site, and what bringing them there costs.
from broker.planner._scratch cimport Scratch
from broker.planner._types cimport choice_t, task_t

cdef int begin_staging(Scratch* scratch) except -1 nogil
cdef void look_near(Scratch* scratch, task_t task) noexcept nogil
cdef int settle(Scratch* scratch, task_t task, choice_t choice) except -1 nogil
