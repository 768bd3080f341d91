# Whom a search through the waiting jobs looks for, and whom it has found.
from libc.math cimport INFINITY

from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef struct Room:
    # Whom a search looks for: who fits, and ends by the shadow time or fits beside the head then.
    processors_t free
    processors_t extra
    seconds_t now
    seconds_t shadow_time

cdef struct Best:
    # The best job found so far; job is -1 for none.
    double value
    job_index_t job
    processors_t width
    seconds_t request


cdef inline void room_for_all(Room* room, const View* view) noexcept nogil:
    # Every job there is, so that a search finds the head.
    room.free = view.processors
    room.extra = view.processors
    room.now = view.now
    room.shadow_time = INFINITY


cdef inline bint room_admits(
    const Room* room, processors_t width, seconds_t request
) noexcept nogil:
    return width <= room.free and (
        width <= room.extra or room.now + request <= room.shadow_time
    )
