# The running jobs by their estimated ends, for disciplines that promise the blocked head a start.
#
# A discipline adds a job when it starts it and removes it when the machine says that it has
# ended. The shadow time of a job that does not fit is the earliest moment by which, by estimates,
# enough has been given back for it.
from libc.math cimport INFINITY
from libc.stdlib cimport free
from libc.string cimport memmove

from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef struct Release:
    seconds_t time             # start + requested time of a running job
    job_index_t job
    processors_t processors

cdef struct Releases:
    Release* release           # running jobs, ascending by (time, job)
    Py_ssize_t count
    Py_ssize_t capacity

cdef struct Shadow:
    seconds_t time             # when the blocked job fits, by estimates; infinity for never
    processors_t extra         # processors free then beyond its own


cdef inline void releases_free(Releases* releases) noexcept nogil:
    free(releases.release)
    releases.release = NULL
    releases.count = 0
    releases.capacity = 0


cdef inline Py_ssize_t releases_before(
    const Releases* releases, seconds_t time, job_index_t job
) noexcept nogil:
    # Number of releases before (time, job).
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = releases.count
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) >> 1
        if releases.release[middle].time < time or (
            releases.release[middle].time == time and releases.release[middle].job < job
        ):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline int releases_add(
    Releases* releases, seconds_t time, job_index_t job, processors_t processors
) except -1 nogil:
    cdef Py_ssize_t position
    if releases.count == releases.capacity:
        position = doubled(releases.capacity, 16)
        releases.release = <Release*> safe_realloc(
            releases.release, position, sizeof(Release), b"releases of running jobs"
        )
        releases.capacity = position
    position = releases_before(releases, time, job)
    memmove(
        &releases.release[position + 1],
        &releases.release[position],
        (releases.count - position) * sizeof(Release),
    )
    releases.release[position].time = time
    releases.release[position].job = job
    releases.release[position].processors = processors
    releases.count += 1
    return 0


cdef inline void releases_remove(
    Releases* releases, seconds_t time, job_index_t job
) noexcept nogil:
    # The release must be there.
    cdef Py_ssize_t position = releases_before(releases, time, job)
    releases.count -= 1
    memmove(
        &releases.release[position],
        &releases.release[position + 1],
        (releases.count - position) * sizeof(Release),
    )


cdef inline int releases_start(Releases* releases, View* view, Py_ssize_t slot) except -1 nogil:
    # Starts the job in a slot of the queue and notes its estimated end.
    cdef job_index_t job = view.queue.job[slot]
    releases_add(
        releases, view.now + view.requested_time[job], job, view.job_processors[job]
    )
    return view.start(view, slot)


cdef inline int releases_appeared(
    Releases* releases, const View* view, job_index_t job
) except -1 nogil:
    # Notes a job that runs, and that another than the discipline has started.
    return releases_add(
        releases, view.start_time[job] + view.requested_time[job], job, view.job_processors[job]
    )


cdef inline void releases_ended(
    Releases* releases, const View* view, job_index_t job
) noexcept nogil:
    # Forgets a job that `releases_start` has started, or that has appeared.
    releases_remove(releases, view.start_time[job] + view.requested_time[job], job)


cdef inline int releases_outlived(
    Releases* releases, const View* view, job_index_t job, seconds_t estimate
) except -1 nogil:
    # Moves the release of a running job that is taken to run for longer.
    cdef seconds_t start_time = view.start_time[job]
    releases_remove(releases, start_time + view.requested_time[job], job)
    return releases_add(releases, start_time + estimate, job, view.job_processors[job])


cdef inline Shadow releases_shadow(
    const Releases* releases, processors_t processors_free, processors_t width
) noexcept nogil:
    # For a job that does not fit now. All releases at the shadow time count.
    cdef Shadow shadow
    cdef processors_t available = processors_free
    cdef Py_ssize_t i
    shadow.time = INFINITY
    for i in range(releases.count):
        if releases.release[i].time > shadow.time:
            break
        available += releases.release[i].processors
        if available >= width:
            shadow.time = releases.release[i].time
    shadow.extra = available - width
    return shadow
