# When the files of a task can be at each site, and what bringing them there costs.
from broker.planner._scratch cimport Scratch
from broker.planner._types cimport choice_t, task_t

cdef void begin_staging(Scratch* scratch) noexcept nogil
cdef void look_near(Scratch* scratch, task_t task) noexcept nogil
cdef void settle(Scratch* scratch, task_t task, choice_t choice) noexcept nogil
