# Sets of the choices that may be free in a slice of time.
from broker.planner._arena cimport Arena
from broker.planner._scratch cimport Scratch, Sets, Strategy
from broker.planner._timetable cimport Span
from broker.planner._types cimport resource_t

cdef void cut_sets(Sets* sets, const Scratch* scratch, Arena* arena) noexcept
cdef void fill_sets(Scratch* scratch) noexcept
cdef void begin_sets(Scratch* scratch, Strategy strategy) noexcept nogil
cdef void mark_full(
    const Scratch* scratch, const Sets* sets, resource_t resource, const Span* full
) noexcept nogil
