# In which order a site of a replay asks its partners, and what it learns of them.
#
# By AWRT `partners` is that order, and one is moved when its figures change. If open jobs count,
# only partners with open jobs change with time: they are sorted anew in every decision (`opened`),
# the others stay in order (`settled`), and `partners` is merged lazily of both. So a decision
# costs in proportion to a site's open jobs, not its partners.
#
# Of a site that has `met`, `partners` are rows of those alone, in order. The others come before them
# (see _met_partners), and a decision finds them one by one.
from libc.stdint cimport int32_t
from libc.string cimport memmove

from grms.federation._met_partners cimport Dealing, MetPartners, dealt_row, width_class
from grms.federation._site_table cimport table_add, table_grow, table_is_full, table_row
from grms.federation._sites cimport Federation, SiteRun
from grms.federation._widths cimport SiteWidths, next_as_wide
from grms.policy._awrt_order cimport (
    Standing,
    asked_before,
    count_open_fast,
    delegated_awrt,
    move_by_awrt_fast,
    order_by_awrt_fast,
    place_by_awrt_fast,
    site_index_t,
)
from lrms_sim.kernel._machine cimport JobColumns
from lrms_sim.kernel._memory cimport safe_realloc
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t

cdef struct Asking:
    # How far a decision has come in the order of partners.
    Py_ssize_t place             # in `partners`, of the present one; -1 before these
    site_index_t unmet           # the next that may not have been met; -1 when there is none



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


cdef inline int meet(SiteRun* home, site_index_t index, double awrt, int32_t asked) except -1 nogil:
    # A partner that was not met before gets its place among those that were.
    cdef MetPartners* met = home.met
    cdef site_index_t row
    cdef Py_ssize_t place
    if table_is_full(&met.asked):
        table_grow(&met.asked)
        home.standing = <Standing*> safe_realloc(
            home.standing, met.asked.capacity, sizeof(Standing), b"partners that were met"
        )
        home.partners = <site_index_t*> safe_realloc(
            home.partners, met.asked.capacity, sizeof(site_index_t), b"partners that were met"
        )
    row = table_add(&met.asked, index)
    home.standing[row].awrt = awrt
    home.standing[row].asked = asked
    home.standing[row].site = index
    place = place_by_awrt_fast(home.partners, home.partner_count, home.standing, row)
    memmove(
        &home.partners[place + 1], &home.partners[place],
        (home.partner_count - place) * sizeof(site_index_t),
    )
    home.partners[place] = row
    home.partner_count += 1
    return 0


cdef inline int learn_of_met(
    SiteRun* home, site_index_t index, double consumption, double response_time
) except -1 nogil:
    # As `learn`, of a site that has records of those alone that it has met.
    cdef Dealing* dealing = &home.met.dealings[dealt_row(home.met, index)]
    cdef int32_t row = table_row(&home.met.asked, index)
    cdef double awrt
    cdef Py_ssize_t place
    dealing.consumption += consumption
    dealing.weighted_response += consumption * response_time
    awrt = delegated_awrt(dealing.consumption, dealing.weighted_response)
    if row >= 0:
        place = place_by_awrt_fast(home.partners, home.partner_count, home.standing, row)
        home.standing[row].awrt = awrt
        move_by_awrt_fast(home.partners, home.partner_count, home.standing, place, -1)
    elif awrt != 0.0:
        meet(home, index, awrt, 0)
    return 0


cdef inline int learn(
    SiteRun* home, site_index_t index, double consumption, double response_time
) except -1 nogil:
    # A site learns that partner `index` has completed one of its jobs, and reorders partners.
    cdef Py_ssize_t place = -1
    if home.met != NULL:
        return learn_of_met(home, index, consumption, response_time)
    if home.by_awrt and not home.count_open:
        place = place_by_awrt_fast(home.partners, home.partner_count, home.standing, index)
    home.consumption[index] += consumption
    home.weighted_response[index] += consumption * response_time
    if not home.by_awrt:
        return 0
    home.standing[index].awrt = delegated_awrt(
        home.consumption[index], home.weighted_response[index]
    )
    if place >= 0:
        move_by_awrt_fast(home.partners, home.partner_count, home.standing, place, -1)
    elif home.open_jobs[index] == 0:
        settle(home, index)
    return 0


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


cdef inline site_index_t unmet_from(
    const Federation* federation, const SiteRun* home, site_index_t home_index,
    site_index_t begin, processors_t width,
) noexcept nogil:
    # The first from there on that is as wide and was not met: a site, or a place of a site in `known`;
    # -1 for none.
    cdef const MetPartners* met = home.met
    if met.known != NULL:
        while begin < met.known_count:
            if federation.processors[met.known[begin]] >= width and (
                table_row(&met.asked, met.known[begin]) < 0
            ):
                return begin
            begin += 1
        return -1
    begin = next_as_wide(&federation.widths, begin, width)
    while begin >= 0 and (begin == home_index or table_row(&met.asked, begin) >= 0):
        begin = next_as_wide(&federation.widths, begin + 1, width)
    return begin


cdef inline Asking first_unmet(
    const Federation* federation, SiteRun* home, site_index_t home_index, processors_t width
) noexcept nogil:
    # Where a decision about a job of that width begins.
    cdef Asking asking
    cdef MetPartners* met = home.met
    cdef int kind = 0
    cdef site_index_t begin
    asking.place = -1
    asking.unmet = -1
    if met == NULL:
        return asking
    if met.known == NULL:
        kind = width_class(width)
    if met.front[kind] < 0:
        return asking
    # A partner stays met, so that the front only moves on.
    begin = unmet_from(
        federation, home, home_index, met.front[kind], 1 if met.known != NULL else 1 << kind
    )
    met.front[kind] = begin
    if begin >= 0:
        asking.unmet = unmet_from(federation, home, home_index, begin, width)
    return asking


cdef inline site_index_t next_partner(
    const Federation* federation, SiteRun* home, site_index_t home_index, processors_t width,
    Asking* asking, site_index_t* noted,
) noexcept nogil:
    # The next partner in the order, -1 after the last; one that was not met is as wide. `noted` is what `take_turns`
    # finds it by.
    cdef site_index_t index
    if home.met == NULL:
        asking.place += 1
        if asking.place == home.partner_count:
            return -1
        noted[0] = <site_index_t> asking.place
        return partner_at(home, asking.place)
    if asking.unmet >= 0:
        index = asking.unmet
        asking.unmet = unmet_from(federation, home, home_index, index + 1, width)
        if home.met.known != NULL:
            index = home.met.known[index]
        noted[0] = ~index
        return index
    asking.place += 1
    if asking.place == home.partner_count:
        return -1
    noted[0] = <site_index_t> asking.place
    return home.standing[home.partners[asking.place]].site


cdef inline int take_turns_of_met(SiteRun* home) except -1 nogil:
    # As `take_turns`. Those that were met before still have their places when they move; then come the
    # others.
    cdef Py_ssize_t i
    cdef site_index_t place
    for i in range(home.asked_count - 1, -1, -1):
        place = home.asked_now[i]
        if place >= 0:
            home.standing[home.partners[place]].asked += 1
            home.turn_place = move_by_awrt_fast(
                home.partners, home.partner_count, home.standing, place, home.turn_place
            )
    for i in range(home.asked_count):
        place = home.asked_now[i]
        if place < 0:
            meet(home, ~place, 0.0, 1)
    home.asked_count = 0
    return 0


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
