# In which order a site of a replay asks its partners, and what it learns of them.
#
# By AWRT `partners` is that order, and one is moved when its figures change. If open jobs count,
# only partners with open jobs change with time: they are sorted anew in every decision (`opened`),
# the others stay in order (`settled`), and `partners` is merged lazily of both. So a decision
# costs in proportion to a site's open jobs, not its partners.
from libc.string cimport memmove

from grms.federation._sites cimport SiteRun
from grms.policy._awrt_order cimport (
    asked_before,
    count_open_fast,
    delegated_awrt,
    move_by_awrt_fast,
    order_by_awrt_fast,
    place_by_awrt_fast,
    site_index_t,
)
from lrms_sim.kernel._machine cimport JobColumns
from lrms_sim.kernel._types cimport job_index_t, seconds_t


cdef inline void settle(SiteRun* home, site_index_t index) noexcept nogil:
    # A partner has no open jobs any more: its place no longer changes with time.
    cdef Py_ssize_t place = 0
    while home.opened[place] != index:
        place += 1
    home.opened_count -= 1
    memmove(
        &home.opened[place], &home.opened[place + 1],
        (home.opened_count - place) * sizeof(site_index_t),
    )
    place = place_by_awrt_fast(home.settled, home.settled_count, home.standing, index)
    memmove(
        &home.settled[place + 1], &home.settled[place],
        (home.settled_count - place) * sizeof(site_index_t),
    )
    home.settled[place] = index
    home.settled_count += 1


cdef inline void unsettle(SiteRun* home, site_index_t index) noexcept nogil:
    cdef Py_ssize_t place = place_by_awrt_fast(
        home.settled, home.settled_count, home.standing, index
    )
    home.settled_count -= 1
    memmove(
        &home.settled[place], &home.settled[place + 1],
        (home.settled_count - place) * sizeof(site_index_t),
    )
    home.opened[home.opened_count] = index
    home.opened_count += 1


cdef inline void learn(
    SiteRun* home, site_index_t index, double consumption, double response_time
) noexcept nogil:
    # A site learns that partner `index` has completed one of its jobs, and reorders partners.
    cdef Py_ssize_t place = -1
    if home.by_awrt and not home.count_open:
        place = place_by_awrt_fast(home.partners, home.partner_count, home.standing, index)
    home.consumption[index] += consumption
    home.weighted_response[index] += consumption * response_time
    if not home.by_awrt:
        return
    home.standing[index].awrt = delegated_awrt(
        home.consumption[index], home.weighted_response[index]
    )
    if place >= 0:
        move_by_awrt_fast(home.partners, home.partner_count, home.standing, place, -1)
    elif home.open_jobs[index] == 0:
        settle(home, index)


cdef inline void open_job(
    SiteRun* home, site_index_t index, const JobColumns* jobs, job_index_t job
) noexcept nogil:
    cdef double consumption = jobs.requested_time[job] * jobs.processors[job]
    if home.open_jobs[index] == 0:
        unsettle(home, index)
    home.open_consumption[index] += consumption
    home.open_submitted[index] += consumption * jobs.submit_time[job]
    home.open_jobs[index] += 1


cdef inline void close_job(
    SiteRun* home, site_index_t index, const JobColumns* jobs, job_index_t job
) noexcept nogil:
    # The partner no longer has it, which the site learns next. Rounding errors do not accumulate.
    cdef double consumption = jobs.requested_time[job] * jobs.processors[job]
    home.open_consumption[index] -= consumption
    home.open_submitted[index] -= consumption * jobs.submit_time[job]
    home.open_jobs[index] -= 1
    if home.open_jobs[index] == 0:
        home.open_consumption[index] = home.open_submitted[index] = 0.0


cdef inline void order_now(SiteRun* home, seconds_t now) noexcept nogil:
    # Open jobs keep waiting, so that the order may change with time alone.
    cdef Py_ssize_t i
    cdef site_index_t index
    cdef double consumption, weighted_response
    for i in range(home.opened_count):
        index = home.opened[i]
        consumption = home.consumption[index]
        weighted_response = home.weighted_response[index]
        count_open_fast(
            &consumption, &weighted_response,
            home.open_consumption[index], home.open_submitted[index], now,
        )
        home.standing[index].awrt = delegated_awrt(consumption, weighted_response)
    order_by_awrt_fast(home.opened, home.opened_count, home.standing)
    home.merged = home.settled_merged = 0


cdef inline site_index_t partner_at(SiteRun* home, Py_ssize_t place) noexcept nogil:
    # The partner at a place of the order, after all earlier places were read.
    cdef Py_ssize_t settled, opened
    if home.count_open and place == home.merged:
        settled = home.settled_merged
        opened = place - settled
        if opened == home.opened_count or settled < home.settled_count and asked_before(
            home.settled[settled], home.opened[opened], home.standing
        ):
            home.partners[place] = home.settled[settled]
            home.settled_merged += 1
        else:
            home.partners[place] = home.opened[opened]
        home.merged += 1
    return home.partners[place]


cdef inline void take_turns(SiteRun* home) noexcept nogil:
    # After a decision, partners asked in it go behind the others of the same AWRT. The last one
    # moves first, so that the others are still at their places. Mostly it goes behind the one
    # moved before it.
    cdef Py_ssize_t place
    cdef site_index_t index
    while home.asked_count > 0:
        home.asked_count -= 1
        place = home.asked_now[home.asked_count]
        index = home.partners[place]
        if not home.count_open:
            home.standing[index].asked += 1
            home.turn_place = move_by_awrt_fast(
                home.partners, home.partner_count, home.standing, place, home.turn_place
            )
        elif home.open_jobs[index] > 0:
            home.standing[index].asked += 1
        else:
            place = place_by_awrt_fast(home.settled, home.settled_count, home.standing, index)
            home.standing[index].asked += 1
            move_by_awrt_fast(home.settled, home.settled_count, home.standing, place, -1)
