# How many processors of a machine are promised to nobody, from now on and for ever.
from lrms_sim.kernel._types cimport processors_t, seconds_t

cdef struct Profile:
    # Segment i reaches from time[i] to time[i+1], the last one for ever.
    seconds_t* time
    processors_t* free
    Py_ssize_t count
    Py_ssize_t capacity

cdef int profile_begin(Profile* profile, seconds_t now, processors_t processors) except -1 nogil
cdef int profile_append(
    Profile* profile, seconds_t from_time, processors_t processors
) except -1 nogil
cdef void profile_close(Profile* profile) noexcept nogil
cdef int profile_take(
    Profile* profile, seconds_t from_time, seconds_t to_time, processors_t width
) except -1 nogil
cdef void profile_forget(Profile* profile, seconds_t now) noexcept nogil
cdef seconds_t profile_earliest(
    const Profile* profile, processors_t width, seconds_t duration, seconds_t reserved
) noexcept nogil
cdef bint profile_fits(
    const Profile* profile, processors_t width, seconds_t from_time, seconds_t to_time
) noexcept nogil
cdef processors_t profile_most_free(
    const Profile* profile, seconds_t from_time, seconds_t to_time
) noexcept nogil
