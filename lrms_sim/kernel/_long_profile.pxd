# The profile of a machine with a long queue: the steps of `_profile.pxd`, and for each class of
# widths the windows in which a job of that class could be.
from libc.stdint cimport int64_t

from lrms_sim.kernel._moments cimport Block, Moments
from lrms_sim.kernel._profile cimport Profile
from lrms_sim.kernel._types cimport processors_t, seconds_t

cdef enum:
    WIDTH_CLASSES = 31               # class c: at least 2^c processors

cdef struct LongProfile:
    Py_ssize_t classes               # of the machine
    Moments steps                    # moment, processors free until the next one
    Moments windows[WIDTH_CLASSES]   # beginning, end of each time with 2^c processors free
    int64_t grown[WIDTH_CLASSES]     # stamp of the last gift of processors that reached 2^c
    int64_t stamp                    # of what is given back from now on
    Block* spare

cdef int long_begin(LongProfile* profile, const Profile* other) except -1 nogil
cdef int long_finish(LongProfile* profile, Profile* other) except -1 nogil
cdef void long_close(LongProfile* profile) noexcept nogil
cdef int long_take(
    LongProfile* profile, seconds_t from_time, seconds_t to_time, processors_t width
) except -1 nogil
cdef void long_forget(LongProfile* profile, seconds_t now) noexcept nogil
cdef void long_forget_windows(LongProfile* profile, seconds_t now) noexcept nogil
cdef bint long_fits(
    const LongProfile* profile, processors_t width, seconds_t from_time, seconds_t to_time
) noexcept nogil
cdef seconds_t long_earlier(
    const LongProfile* profile, processors_t width, seconds_t duration, seconds_t reserved
) noexcept nogil
cdef Py_ssize_t width_class(processors_t width) noexcept nogil
