# The compiled side of the disciplines on a machine of nodes.
from libc.stdint cimport int32_t

from lrms_sim.kernel._scheduler cimport Scheduler

cdef class NodeScheduler(Scheduler):
    cdef const int32_t[::1] shape     # by job, where equal demands have one number
    cdef const int32_t[::1] asked     # the same as it was given
    cdef Py_ssize_t jobs
    cdef Py_ssize_t shapes
