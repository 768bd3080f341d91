"""A central scheduler of all sites, for comparisons: it knows every run time.

It gives each job its earliest start when the job arrives. It shares nothing with the exchange: no
site decides anything.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int16_t
from libc.stdlib cimport calloc, free

from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._profile cimport (
    Profile,
    profile_begin,
    profile_close,
    profile_earliest,
    profile_fits,
    profile_forget,
    profile_take,
)
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t

cdef struct CentralSite:
    processors_t processors
    Profile every                # what is free beside all jobs
    Profile own                  # what is free beside own users' jobs alone
    job_index_t* guests          # that may not have ended yet, in order of their placing
    Py_ssize_t count
    Py_ssize_t capacity

cdef struct Jobs:
    const seconds_t* submit
    const processors_t* width
    const seconds_t* run
    const int16_t* home
    seconds_t* start
    int16_t* site
    int taken_away               # jobs that had started and lost their place


cdef struct Displaced:
    job_index_t job
    seconds_t start              # that it had


cdef inline seconds_t earliest(
    const Profile* profile, const Jobs* jobs, job_index_t job
) noexcept nogil:
    return profile_earliest(profile, jobs.width[job], jobs.run[job], INFINITY)


cdef inline int16_t best_site(
    const CentralSite* sites, int16_t count, const Jobs* jobs, job_index_t job, seconds_t* start
) noexcept nogil:
    # The site with the earliest start; home where it is no later than elsewhere, else the first.
    cdef int16_t home = jobs.home[job]
    cdef int16_t found = home
    cdef int16_t index
    cdef seconds_t time
    start[0] = earliest(&sites[home].every, jobs, job)
    for index in range(count):
        if index == home or jobs.width[job] > sites[index].processors:
            continue
        time = earliest(&sites[index].every, jobs, job)
        if time < start[0]:
            start[0] = time
            found = index
    return found


cdef inline int settle_from(
    CentralSite* sites, Jobs* jobs, job_index_t job, int16_t index, seconds_t start, seconds_t now
) except -1 nogil:
    # Gives a job its place, which may have begun.
    cdef CentralSite* site = &sites[index]
    cdef seconds_t end = start + jobs.run[job]
    cdef Py_ssize_t capacity
    cdef seconds_t begun = start if start > now else now
    jobs.start[job] = start
    jobs.site[job] = index
    profile_take(&site.every, begun, end, jobs.width[job])
    if jobs.home[job] == index:
        profile_take(&site.own, begun, end, jobs.width[job])
        return 0
    if site.count == site.capacity:
        capacity = doubled(site.capacity, 64)
        site.guests = <job_index_t*> safe_realloc(
            site.guests, capacity, sizeof(job_index_t), b"guests of a central scheduler"
        )
        site.capacity = capacity
    site.guests[site.count] = job
    site.count += 1
    return 0


cdef inline int settle(
    CentralSite* sites, Jobs* jobs, job_index_t job, int16_t index, seconds_t start
) except -1 nogil:
    return settle_from(sites, jobs, job, index, start, start)


cdef inline void forget(CentralSite* site, const Jobs* jobs, seconds_t now) noexcept nogil:
    # What lies behind decides nothing any more.
    cdef Py_ssize_t kept = 0
    cdef Py_ssize_t place
    cdef job_index_t job
    profile_forget(&site.every, now)
    profile_forget(&site.own, now)
    for place in range(site.count):
        job = site.guests[place]
        if jobs.start[job] + jobs.run[job] > now:
            site.guests[kept] = job
            kept += 1
    site.count = kept


cdef inline Py_ssize_t latest_guest(
    const CentralSite* site, const Jobs* jobs, seconds_t start, seconds_t end
) noexcept nogil:
    # Of the guests that run between two moments the one that starts last; -1 for none.
    cdef Py_ssize_t found = -1
    cdef Py_ssize_t place
    cdef job_index_t job
    for place in range(site.count):
        job = site.guests[place]
        if jobs.start[job] >= end or jobs.start[job] + jobs.run[job] <= start:
            continue
        if found < 0 or jobs.start[job] >= jobs.start[site.guests[found]]:
            found = place
    return found


cdef inline void take_back(
    CentralSite* sites, Jobs* jobs, job_index_t job, seconds_t now
) noexcept nogil:
    # Takes a job's place from it, and what has run of it is lost. Memory for this has been there.
    cdef CentralSite* site = &sites[jobs.site[job]]
    cdef seconds_t begun = jobs.start[job] if jobs.start[job] > now else now
    cdef seconds_t end = jobs.start[job] + jobs.run[job]
    cdef Py_ssize_t place = 0
    profile_take(&site.every, begun, end, -jobs.width[job])
    if jobs.home[job] == jobs.site[job]:
        profile_take(&site.own, begun, end, -jobs.width[job])
        return
    while site.guests[place] != job:
        place += 1
    site.count -= 1
    site.guests[place] = site.guests[site.count]


cdef inline double work(const Jobs* jobs, job_index_t job) noexcept nogil:
    return jobs.run[job] * jobs.width[job]


cdef int take_home(
    CentralSite* sites, int16_t count, Jobs* jobs, job_index_t job, seconds_t start,
    int16_t instead, seconds_t later, seconds_t now,
) except -1 nogil:
    # Gives a job a place at home, where guests make room: the latest first. They get places anew,
    # by which nobody is displaced. Where that costs more than it brings, weighted by work, all is
    # undone, and the job gets its place at `instead`.
    cdef CentralSite* home = &sites[jobs.home[job]]
    cdef seconds_t end = start + jobs.run[job]
    cdef seconds_t time
    cdef double brought = work(jobs, job) * (later - start)
    cdef Py_ssize_t gone = 0
    cdef Py_ssize_t i
    cdef int stopped = 0
    cdef int16_t index
    cdef Displaced* displaced = <Displaced*> safe_realloc(
        NULL, home.count, sizeof(Displaced), b"displaced guests"
    )
    try:
        while not profile_fits(&home.every, jobs.width[job], start, end):
            displaced[gone].job = home.guests[latest_guest(home, jobs, start, end)]
            displaced[gone].start = jobs.start[displaced[gone].job]
            stopped += displaced[gone].start < now
            take_back(sites, jobs, displaced[gone].job, now)
            gone += 1
        settle(sites, jobs, job, jobs.home[job], start)
        for i in range(gone):
            index = best_site(sites, count, jobs, displaced[i].job, &time)
            settle(sites, jobs, displaced[i].job, index, time)
            brought -= work(jobs, displaced[i].job) * (time - displaced[i].start)
        if brought > 0.0:
            jobs.taken_away += stopped
            return 0
        for i in range(gone):
            take_back(sites, jobs, displaced[i].job, now)
        take_back(sites, jobs, job, now)
        for i in range(gone):
            settle_from(sites, jobs, displaced[i].job, jobs.home[job], displaced[i].start, now)
        settle(sites, jobs, job, instead, later)
    finally:
        free(displaced)
    return 0


def central_schedule(
    const seconds_t[::1] submit not None,
    const processors_t[::1] width not None,
    const seconds_t[::1] run not None,
    const int16_t[::1] home not None,
    sizes,
    seconds_t[::1] start not None,
    int16_t[::1] site not None,
    bint preempt,
):
    cdef Py_ssize_t rows = submit.shape[0]
    cdef int16_t count = len(sizes)
    cdef CentralSite* sites
    cdef Jobs jobs
    cdef job_index_t job
    cdef int16_t index
    cdef seconds_t time, alone, now
    if not (
        width.shape[0] == run.shape[0] == home.shape[0] == start.shape[0] == site.shape[0] == rows
    ):
        raise ValueError(f"every column needs {rows} rows, as submit has")
    if rows == 0:
        return 0
    jobs = Jobs(&submit[0], &width[0], &run[0], &home[0], &start[0], &site[0], 0)
    for job in range(<job_index_t> rows):
        if not 0 <= home[job] < count or width[job] > sizes[home[job]]:
            raise ValueError(f"job {job} does not fit its home")
    sites = <CentralSite*> calloc(count, sizeof(CentralSite))
    if sites == NULL:
        raise MemoryError(f"no memory for {count} sites")
    try:
        for index in range(count):
            sites[index].processors = sizes[index]
            profile_begin(&sites[index].every, submit[0], sizes[index])
            profile_begin(&sites[index].own, submit[0], sizes[index])
        with nogil:
            for job in range(<job_index_t> rows):
                now = jobs.submit[job]
                for index in range(count):
                    forget(&sites[index], &jobs, now)
                index = best_site(sites, count, &jobs, job, &time)
                alone = INFINITY
                if preempt:
                    alone = earliest(&sites[jobs.home[job]].own, &jobs, job)
                if alone < time:
                    take_home(sites, count, &jobs, job, alone, index, time, now)
                else:
                    settle(sites, &jobs, job, index, time)
    finally:
        for index in range(count):
            profile_close(&sites[index].every)
            profile_close(&sites[index].own)
            free(sites[index].guests)
        free(sites)
    return jobs.taken_away
