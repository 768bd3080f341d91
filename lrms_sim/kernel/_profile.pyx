"""The profile of promises that a machine has given: a step function over time."""

from libc.stdlib cimport free
from libc.string cimport memmove

from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport processors_t, seconds_t


cdef int profile_make_room(Profile* profile) except -1 nogil:
    # For two more segments.
    cdef Py_ssize_t capacity
    if profile.count + 2 <= profile.capacity:
        return 0
    capacity = doubled(profile.capacity, 256)
    profile.time = <seconds_t*> safe_realloc(
        profile.time, capacity, sizeof(seconds_t), b"segments of a profile"
    )
    profile.free = <processors_t*> safe_realloc(
        profile.free, capacity, sizeof(processors_t), b"segments of a profile"
    )
    profile.capacity = capacity
    return 0


cdef int profile_begin(Profile* profile, seconds_t now, processors_t processors) except -1 nogil:
    # A machine of which nothing is promised.
    profile_make_room(profile)
    profile.time[0] = now
    profile.free[0] = processors
    profile.count = 1
    return 0


cdef int profile_append(
    Profile* profile, seconds_t from_time, processors_t processors
) except -1 nogil:
    # So many processors are free from a moment on that is later than all in the profile.
    profile_make_room(profile)
    profile.time[profile.count] = from_time
    profile.free[profile.count] = processors
    profile.count += 1
    return 0


cdef void profile_close(Profile* profile) noexcept nogil:
    free(profile.time)
    free(profile.free)
    profile.time = NULL
    profile.free = NULL
    profile.count = 0
    profile.capacity = 0


cdef inline Py_ssize_t profile_segment(
    const Profile* profile, seconds_t time
) noexcept nogil:
    # The segment that holds `time`; 0 for a time before the first.
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = profile.count
    cdef Py_ssize_t middle
    while high - low > 1:
        middle = (low + high) >> 1
        if profile.time[middle] <= time:
            low = middle
        else:
            high = middle
    return low


cdef inline Py_ssize_t profile_split(Profile* profile, seconds_t time) noexcept nogil:
    # Makes a segment start at `time` and returns its number. Room has been made.
    cdef Py_ssize_t segment = profile_segment(profile, time)
    if profile.time[segment] == time:
        return segment
    segment += 1
    memmove(
        &profile.time[segment + 1],
        &profile.time[segment],
        (profile.count - segment) * sizeof(seconds_t),
    )
    memmove(
        &profile.free[segment + 1],
        &profile.free[segment],
        (profile.count - segment) * sizeof(processors_t),
    )
    profile.time[segment] = time
    profile.free[segment] = profile.free[segment - 1]
    profile.count += 1
    return segment


cdef inline void profile_join(Profile* profile, Py_ssize_t segment) noexcept nogil:
    # Drops a segment that promises what the one before it promises.
    if 0 < segment < profile.count and profile.free[segment] == profile.free[segment - 1]:
        profile.count -= 1
        memmove(
            &profile.time[segment],
            &profile.time[segment + 1],
            (profile.count - segment) * sizeof(seconds_t),
        )
        memmove(
            &profile.free[segment],
            &profile.free[segment + 1],
            (profile.count - segment) * sizeof(processors_t),
        )


cdef int profile_take(
    Profile* profile, seconds_t from_time, seconds_t to_time, processors_t width
) except -1 nogil:
    # Takes processors (gives them back where `width` is negative) between two moments.
    cdef Py_ssize_t first, last, i
    if from_time >= to_time:
        return 0
    profile_make_room(profile)
    first = profile_split(profile, from_time)
    last = profile_split(profile, to_time)
    for i in range(first, last):
        profile.free[i] -= width
    profile_join(profile, last)
    profile_join(profile, first)
    return 0


cdef void profile_forget(Profile* profile, seconds_t now) noexcept nogil:
    # Drops what lies before now.
    cdef Py_ssize_t segment = profile_segment(profile, now)
    if segment > 0:
        profile.count -= segment
        memmove(profile.time, &profile.time[segment], profile.count * sizeof(seconds_t))
        memmove(profile.free, &profile.free[segment], profile.count * sizeof(processors_t))
    profile.time[0] = now


cdef seconds_t profile_earliest(
    const Profile* profile, processors_t width, seconds_t duration, seconds_t reserved
) noexcept nogil:
    # Earliest start of what is in the profile at `reserved`: its own processors are free to it
    # from there on, so a window needs to last until its end or until there. Of what is not in it
    # yet that is infinite; the last segment is the empty machine.
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t last
    cdef seconds_t end_time
    while True:
        while first < profile.count and profile.free[first] < width:
            first += 1
        if first >= profile.count or profile.time[first] >= reserved:
            return reserved
        end_time = profile.time[first] + duration
        if end_time > reserved:
            end_time = reserved
        last = first + 1
        while (
            last < profile.count
            and profile.time[last] < end_time
            and profile.free[last] >= width
        ):
            last += 1
        if last == profile.count or profile.time[last] >= end_time:
            return profile.time[first]
        first = last


cdef bint profile_fits(
    const Profile* profile, processors_t width, seconds_t from_time, seconds_t to_time
) noexcept nogil:
    # Whether so many processors are free at a moment, and from it on until another one.
    cdef Py_ssize_t i = profile_segment(profile, from_time)
    while profile.free[i] >= width:
        i += 1
        if i == profile.count or profile.time[i] >= to_time:
            return True
    return False


cdef processors_t profile_most_free(
    const Profile* profile, seconds_t from_time, seconds_t to_time
) noexcept nogil:
    # Most processors free anywhere between two moments; 0 for an empty interval.
    cdef processors_t most = 0
    cdef Py_ssize_t i
    if from_time >= to_time:
        return 0
    i = profile_segment(profile, from_time)
    while i < profile.count and profile.time[i] < to_time:
        if profile.free[i] > most:
            most = profile.free[i]
        i += 1
    return most
