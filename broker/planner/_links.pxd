# Transfers over links that carry one at a time.
from broker.planner._scratch cimport Links, Scratch
from broker.planner._types cimport choice_t, task_t

cdef void links_close(Links* links) noexcept nogil
cdef int begin_links(Scratch* scratch) except -1 nogil
cdef void look_contended(Scratch* scratch, task_t task) noexcept nogil
cdef int send_files(Scratch* scratch, task_t task, choice_t choice) except -1 nogil
