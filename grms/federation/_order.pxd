# In which order a site of a replay asks its partners, and what it learns of them.
#
# By AWRT `partners` is that order, and one is moved when its figures change. If open jobs count,
# only partners with open jobs change with time: they are sorted anew in every decision (`opened`),
# the others stay in order (`settled`), and `partners` is merged lazily of both. So a decision
# costs in proportion to a site's open jobs, not its partners.
#
# Of a site that has `met`, `partners` are rows of those alone, in order. The others come before
# them (see _met_partners), and a decision finds them one by one.
from libc.stdint cimport int32_t
from libc.string cimport memmove

from grms.federation._met_partners cimport (
    NO_SITE,
    Dealing,
    MetPartners,
    dealt_row,
    is_met,
    is_once,
    place_of,
    set_met,
    site_at,
    width_class,
)
from grms.federation._site_table cimport table_add, table_grow, table_is_full, table_row
from grms.federation._sites cimport Federation, SiteRun
from grms.federation._widths cimport next_as_wide
from grms.policy._decisions cimport (
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
    Py_ssize_t place             # in `partners`, of the last one; -1 before these
    site_index_t unmet           # place of the next that was not met; NO_SITE when there is none
    site_index_t once            # then of the next that was asked once; see MetPartners
    bint met_all                 # `once` is set


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


cdef inline int rank(
    SiteRun* home, site_index_t index, double awrt, int32_t asked
) except -1 nogil:
    # A partner that was not ranked gets its place among those that are.
    cdef MetPartners* met = home.met
    cdef site_index_t row
    cdef Py_ssize_t place
    if table_is_full(&met.ranked):
        table_grow(&met.ranked)
        home.standing = <Standing*> safe_realloc(
            home.standing, met.ranked.capacity, sizeof(Standing), b"partners that were met"
        )
        home.partners = <site_index_t*> safe_realloc(
            home.partners, met.ranked.capacity, sizeof(site_index_t), b"partners that were met"
        )
    row = table_add(&met.ranked, index)
    home.standing[row].awrt = awrt
    home.standing[row].asked = asked
    home.standing[row].site = place_of(met, index)
    place = place_by_awrt_fast(home.partners, home.partner_count, home.standing, row)
    memmove(
        &home.partners[place + 1], &home.partners[place],
        (home.partner_count - place) * sizeof(site_index_t),
    )
    home.partners[place] = row
    home.partner_count += 1
    return 0


cdef inline int learn_of_met(
    const Federation* federation, SiteRun* home, site_index_t index, double consumption,
    double response_time,
) except -1 nogil:
    # As `learn`, of a site that has records of those alone that it has met.
    cdef MetPartners* met = home.met
    cdef Dealing* dealing = &met.dealings[dealt_row(met, index)]
    cdef int32_t row
    cdef site_index_t place
    cdef Py_ssize_t rank_before
    cdef bint once
    cdef double awrt
    dealing.consumption += consumption
    dealing.weighted_response += consumption * response_time
    awrt = delegated_awrt(dealing.consumption, dealing.weighted_response)
    row = table_row(&met.ranked, index)
    if row >= 0:
        rank_before = place_by_awrt_fast(home.partners, home.partner_count, home.standing, row)
        home.standing[row].awrt = awrt
        move_by_awrt_fast(home.partners, home.partner_count, home.standing, rank_before, -1)
    elif awrt != 0.0:
        place = place_of(met, index)
        once = is_once(met, place)
        set_met(met, place, False, federation.processors[index])
        rank(home, index, awrt, once)
    return 0


cdef inline int learn(
    const Federation* federation, SiteRun* home, site_index_t index, double consumption,
    double response_time,
) except -1 nogil:
    # A site learns that partner `index` has completed one of its jobs, and reorders partners.
    cdef Py_ssize_t place = -1
    if home.met != NULL:
        return learn_of_met(federation, home, index, consumption, response_time)
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


cdef inline site_index_t next_place_as_wide(
    const Federation* federation, const MetPartners* met, site_index_t place, processors_t width
) noexcept nogil:
    # The first place from this one on, at most one past the last, of a site as wide; all are known.
    cdef site_index_t behind = met.place_count - met.start
    cdef site_index_t site
    if place < behind:
        site = next_as_wide(&federation.widths, place + met.start, width)
        if site >= 0:
            return site - met.start
        place = behind
    site = next_as_wide(&federation.widths, place - behind, width)
    return site + behind if 0 <= site < met.start else NO_SITE


cdef inline site_index_t place_from(
    const Federation* federation, const MetPartners* met, site_index_t home_index,
    site_index_t begin, processors_t width, bint once,
) noexcept nogil:
    # The first place from there on of a partner as wide that was not met, or was asked once.
    if met.known != NULL:
        while begin < met.place_count:
            if federation.processors[site_at(met, begin)] >= width and (
                is_once(met, begin) if once else not is_met(met, begin)
            ):
                return begin
            begin += 1
        return NO_SITE
    begin = next_place_as_wide(federation, met, begin, width)
    while begin >= 0 and not (
        is_once(met, begin) if once
        else not is_met(met, begin) and site_at(met, begin) != home_index
    ):
        begin = next_place_as_wide(federation, met, begin + 1, width)
    return begin


cdef inline site_index_t first_place(
    const Federation* federation, MetPartners* met, site_index_t home_index, processors_t width,
    bint once,
) noexcept nogil:
    # The first place of all, by way of the front, which is moved on.
    cdef int kind = 0 if met.known != NULL else width_class(width)
    cdef site_index_t* front = &met.front_once[kind] if once else &met.front[kind]
    if front[0] == NO_SITE:
        return NO_SITE
    front[0] = place_from(
        federation, met, home_index, front[0], 1 if met.known != NULL else 1 << kind, once
    )
    if front[0] == NO_SITE:
        return NO_SITE
    return place_from(federation, met, home_index, front[0], width, once)


cdef inline Asking asking_begins(
    const Federation* federation, SiteRun* home, site_index_t home_index, processors_t width
) noexcept nogil:
    # A decision about a job of that width begins.
    cdef Asking asking
    asking.place = -1
    asking.unmet = asking.once = NO_SITE
    asking.met_all = False
    if home.met != NULL:
        asking.unmet = first_place(federation, home.met, home_index, width, False)
    return asking


cdef inline site_index_t next_of_met(
    const Federation* federation, SiteRun* home, site_index_t home_index, processors_t width,
    Asking* asking, site_index_t* noted,
) noexcept nogil:
    # As `next_partner`, of a site that has records of those alone that it has met.
    cdef MetPartners* met = home.met
    cdef site_index_t place
    if asking.unmet != NO_SITE:
        place = asking.unmet
        asking.unmet = place_from(federation, met, home_index, place + 1, width, False)
    else:
        if not asking.met_all:
            asking.met_all = True
            asking.once = first_place(federation, met, home_index, width, True)
        place = asking.once
        if place == NO_SITE:
            asking.place += 1
            if asking.place == home.partner_count:
                return NO_SITE
            noted[0] = <site_index_t> asking.place
            return site_at(met, home.standing[home.partners[asking.place]].site)
        asking.once = place_from(federation, met, home_index, place + 1, width, True)
    noted[0] = ~place
    return site_at(met, place)


cdef inline site_index_t next_partner(
    const Federation* federation, SiteRun* home, site_index_t home_index, processors_t width,
    Asking* asking, site_index_t* noted,
) noexcept nogil:
    # The next partner in the order, NO_SITE after the last; `take_turns` finds it by `noted`.
    if home.met != NULL:
        return next_of_met(federation, home, home_index, width, asking, noted)
    asking.place += 1
    if asking.place == home.partner_count:
        return NO_SITE
    noted[0] = <site_index_t> asking.place
    return partner_at(home, asking.place)


cdef inline int take_turns_of_met(const Federation* federation, SiteRun* home) except -1 nogil:
    # As `take_turns`. Those that were ranked before still have their places when they move; then
    # come the others.
    cdef MetPartners* met = home.met
    cdef Py_ssize_t i
    cdef site_index_t place, index
    for i in range(home.asked_count - 1, -1, -1):
        place = home.asked_now[i]
        if place >= 0:
            home.standing[home.partners[place]].asked += 1
            home.turn_place = move_by_awrt_fast(
                home.partners, home.partner_count, home.standing, place, home.turn_place
            )
    for i in range(home.asked_count):
        place = ~home.asked_now[i]
        if place < 0:
            continue
        index = site_at(met, place)
        if not is_met(met, place):
            set_met(met, place, True, federation.processors[index])
        else:
            set_met(met, place, False, federation.processors[index])
            rank(home, index, 0.0, 2)
    home.asked_count = 0
    return 0


cdef inline int take_turn_of_met(
    const Federation* federation, SiteRun* home, site_index_t index
) except -1 nogil:
    # As `take_turns_of_met`, of one partner alone, wherever it stands by now.
    cdef int32_t row = table_row(&home.met.ranked, index)
    if home.asked_now == NULL:
        return 0
    if row < 0:
        home.asked_now[0] = ~place_of(home.met, index)
    else:
        home.asked_now[0] = <site_index_t> place_by_awrt_fast(
            home.partners, home.partner_count, home.standing, row
        )
    home.asked_count = 1
    return take_turns_of_met(federation, home)


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


cdef inline int take_all_turns(const Federation* federation, SiteRun* home) except -1 nogil:
    # As `take_turns`, of any site.
    if home.met != NULL:
        return take_turns_of_met(federation, home)
    take_turns(home)
    return 0
