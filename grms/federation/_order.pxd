# In which order a site of a replay asks its partners, and what it learns of them.
from grms.federation._sites cimport SiteRun
from grms.policy._awrt_order cimport (
    count_open_fast,
    move_by_awrt_fast,
    order_by_awrt_fast,
    place_by_awrt_fast,
    site_index_t,
)
from lrms_sim._machine cimport JobColumns
from lrms_sim._types cimport job_index_t, seconds_t


cdef inline void learn(
    SiteRun* home, site_index_t index, double consumption, double response_time
) noexcept nogil:
    # A site learns that partner `index` has completed one of its jobs, and orders partners anew.
    cdef Py_ssize_t place = -1
    if home.by_awrt and not home.count_open:
        place = place_by_awrt_fast(
            home.partners, home.partner_count, home.consumption, home.weighted_response,
            home.asked, index,
        )
    home.consumption[index] += consumption
    home.weighted_response[index] += consumption * response_time
    if place >= 0:
        move_by_awrt_fast(
            home.partners, home.partner_count, home.consumption, home.weighted_response,
            home.asked, place, -1,
        )


cdef inline void open_job(
    SiteRun* home, site_index_t index, const JobColumns* jobs, job_index_t job
) noexcept nogil:
    # Partner `index` has one of its jobs.
    cdef double consumption = jobs.requested_time[job] * jobs.processors[job]
    home.open_consumption[index] += consumption
    home.open_submitted[index] += consumption * jobs.submit_time[job]
    home.open_jobs[index] += 1


cdef inline void close_job(
    SiteRun* home, site_index_t index, const JobColumns* jobs, job_index_t job
) noexcept nogil:
    # It has it no longer. Rounding does not pile up over the years.
    cdef double consumption = jobs.requested_time[job] * jobs.processors[job]
    home.open_consumption[index] -= consumption
    home.open_submitted[index] -= consumption * jobs.submit_time[job]
    home.open_jobs[index] -= 1
    if home.open_jobs[index] == 0:
        home.open_consumption[index] = home.open_submitted[index] = 0.0


cdef inline void order_now(SiteRun* home, seconds_t now) noexcept nogil:
    # Open jobs wait on, so that the order may change with nothing but time.
    cdef Py_ssize_t i
    cdef site_index_t index
    for i in range(home.partner_count):
        index = home.partners[i]
        home.consumption_now[index] = home.consumption[index]
        home.weighted_response_now[index] = home.weighted_response[index]
        count_open_fast(
            &home.consumption_now[index], &home.weighted_response_now[index],
            home.open_consumption[index], home.open_submitted[index], now,
        )
    order_by_awrt_fast(
        home.partners, home.partner_count, home.consumption_now, home.weighted_response_now,
        home.asked,
    )


cdef inline void take_turns(SiteRun* home) noexcept nogil:
    # After a decision: whoever was asked in it is asked behind the others of the same AWRT. The
    # last one moves first, so that the others are still at their places. Mostly it goes behind the
    # one that has moved before it.
    cdef Py_ssize_t place
    while home.asked_count > 0:
        home.asked_count -= 1
        place = home.asked_now[home.asked_count]
        home.asked[home.partners[place]] += 1
        if not home.count_open:
            home.turn_place = move_by_awrt_fast(
                home.partners, home.partner_count, home.consumption, home.weighted_response,
                home.asked, place, home.turn_place,
            )
