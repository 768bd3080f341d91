# Guests that may be sent home, and the account that decides which: what the replay of a federation
# has besides fair exchange. docs/strict-exchange.md states the rule, docs/disciplines.md the ties.
from libc.math cimport NAN, ceil

from grms.federation._due cimport due_set
from grms.federation._ledger cimport ledger_return
from grms.federation._order cimport close_job
from grms.federation._own_account cimport (
    OwnAccount,
    account_look,
    account_owed,
    account_ratio,
    account_turn,
)
from grms.federation._sites cimport Federation, SiteRun
from grms.policy._constraints cimport (
    GUESTS_PREEMPTED,
    PROTECTED,
    favored_fast,
    kept_fast,
    lost_fast,
)
from grms.policy._decisions cimport KnownJob, site_index_t
from lrms_sim.kernel._machine cimport (
    JobColumns,
    core_hide,
    core_idle,
    core_next_time,
    core_pass,
    core_preempt,
    core_resume,
    core_return,
    core_set_clock,
    core_show,
    core_start_unseen,
)
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._queue cimport WaitingQueue
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t


cdef inline int guest_add(SiteRun* site, job_index_t job) except -1 nogil:
    cdef Py_ssize_t capacity
    if site.guest_count == site.guest_capacity:
        capacity = doubled(site.guest_capacity, 64)
        site.guests = <job_index_t*> safe_realloc(
            site.guests, capacity, sizeof(job_index_t), b"guests"
        )
        site.guest_capacity = capacity
    site.guests[site.guest_count] = job
    site.guest_count += 1
    return 0


cdef inline void guest_remove(SiteRun* site, job_index_t job) noexcept nogil:
    # If it is among those that count.
    cdef Py_ssize_t place
    for place in range(site.guest_count):
        if site.guests[place] == job:
            site.guest_count -= 1
            site.guests[place] = site.guests[site.guest_count]
            return


cdef inline bint gives_way(
    const SiteRun* site, const site_index_t* owner, job_index_t guest, site_index_t other
) noexcept nogil:
    # Whether an unseen guest of a job's owner is owed less than that other partner.
    return site.ledger[owner[guest]].books.favor < site.ledger[other].books.favor


cdef inline processors_t room_for(
    const SiteRun* site, const site_index_t* owner, site_index_t other
) noexcept nogil:
    # Processors that a partner's guests may have: idle ones, and those of guests that give way.
    cdef processors_t room = core_idle(&site.core)
    cdef Py_ssize_t place
    for place in range(site.core.unseen.count):
        if gives_way(site, owner, site.core.unseen.job[place], other):
            room += site.core.view.job_processors[site.core.unseen.job[place]]
    return room


cdef inline bint leaves_before(
    const SiteRun* site, const site_index_t* owner, job_index_t job, job_index_t other
) noexcept nogil:
    # Which of two guests gives way first: who is owed less, then who has started later.
    cdef double favor = site.ledger[owner[job]].books.favor
    cdef double than = site.ledger[owner[other]].books.favor
    if favor != than:
        return favor < than
    if site.core.start_time[job] != site.core.start_time[other]:
        return site.core.start_time[job] > site.core.start_time[other]
    return job > other


cdef inline int make_room(
    SiteRun* site, const site_index_t* owner, job_index_t job
) except -1 nogil:
    # Guests of partners that are owed less make room for this job of another one.
    cdef job_index_t first, guest
    cdef Py_ssize_t place
    while site.core.view.job_processors[job] > core_idle(&site.core):
        first = -1
        for place in range(site.core.unseen.count):
            guest = site.core.unseen.job[place]
            if gives_way(site, owner, guest, owner[job]) and (
                first < 0 or leaves_before(site, owner, guest, first)
            ):
                first = guest
        if first < 0:
            return 0    # the start will say that there is no room
        core_preempt(&site.core, first)
    return 0


cdef enum:
    PARTS_OF_A_RUN = 1000        # a Byzantine partner ends guests when one of them is left


cdef inline int guest_start(
    Federation* federation, SiteRun* site, job_index_t job, seconds_t now
) except -1 nogil:
    # A guest starts at once where the batch system can preempt; it makes no pass, which would start
    # nobody.
    core_set_clock(&site.core, now)
    if site.rogue != NULL and site.rogue.returns:
        federation.true_left[job] = federation.left_run[job]
        federation.left_run[job] *= 1.0 - 1.0 / PARTS_OF_A_RUN
    if site.strict.favors:
        make_room(site, federation.submitted_to, job)
    if federation.handing[job] != PROTECTED:
        return core_start_unseen(&site.core, job)
    guest_add(site, job)
    return core_resume(&site.core, job, now)


cdef inline double owed_now(
    Federation* federation, SiteRun* site, site_index_t index, seconds_t now, double covered
) noexcept nogil:
    # What the site's own waiting jobs have lost by now, or any sum that exceeds what is covered.
    cdef const WaitingQueue* queue = &site.core.view.queue
    cdef double ratio = account_ratio(site.account)
    cdef double total = 0.0
    cdef Py_ssize_t slot
    cdef job_index_t job
    if queue.count == 0:
        return 0.0
    for slot in range(queue.head, queue.tail):
        job = queue.job[slot]
        if job >= 0 and federation.submitted_to[job] == index:
            total += account_owed(site.account, job, ratio, now)
            if covered - total < 0.0:
                break
    return total


cdef inline void width_ended(SiteRun* site, processors_t width, double work) noexcept nogil:
    # An own job of that width has ended.
    while width <= site.core.view.processors:
        site.ended_by_width[width] += work
        width += width & -width


cdef inline double width_up_to(const SiteRun* site, processors_t width) noexcept nogil:
    cdef double total = 0.0
    while width > 0:
        total += site.ended_by_width[width]
        width -= width & -width
    return total


cdef inline bint affords(
    Federation* federation, SiteRun* site, site_index_t index, KnownJob job, seconds_t now
) noexcept nogil:
    # Whether the account covers what a guest that runs to its end may cost own users: the work of
    # their jobs that would find room without guests, but not beside this one and the others.
    cdef OwnAccount* account = site.account
    cdef double spare = account.rules.allowance * account.base
    cdef double owed
    cdef processors_t idle = core_idle(&site.core)
    cdef processors_t beside = 0
    cdef double impacts = 0.0
    cdef double impact = 0.0
    cdef seconds_t known
    cdef Py_ssize_t i
    owed = owed_now(federation, site, index, now, account.saved + spare)
    if account.saved + spare - owed < 0.0:
        return False
    for i in range(site.guest_count):
        beside += federation.jobs.processors[site.guests[i]]
        impacts += federation.impact[site.guests[i]]
    if account.count > 0:
        known = now - account.first_arrival
        impact = width_up_to(site, idle + beside) - width_up_to(site, idle - job.processors)
        impact = impact * (job.requested_time * job.requested_time) / (
            known if known > 86400.0 else 86400.0
        )
    federation.impact[job.number] = impact
    return account.gain + spare - owed - impacts - impact >= 0.0


cdef inline int send_home(
    Federation* federation, site_index_t index, job_index_t job, seconds_t now
) except -1 nogil:
    # A guest has lost its processors at site `index`: it joins its home's queue at its old place.
    cdef JobColumns* jobs = &federation.jobs
    cdef SiteRun* site = &federation.sites[index]
    cdef site_index_t home_index = federation.submitted_to[job]
    cdef SiteRun* home = &federation.sites[home_index]
    cdef processors_t width = jobs.processors[job]
    cdef seconds_t elapsed = now - jobs.start_time[job]
    cdef seconds_t kept = 0.0
    if site.rogue != NULL and site.rogue.returns:
        federation.left_run[job] = federation.true_left[job]
    elif federation.checkpoint != NULL:
        kept = kept_fast(elapsed, federation.checkpoint[job], jobs.run_time[job])
    guest_remove(site, job)
    home.preempted += 1
    home.lost += (elapsed - kept) * width
    if home.count_open:
        close_job(home, index, jobs, job)
    if site.ledger != NULL:
        site.ledger[home_index].books.taken += (kept - jobs.requested_time[job]) * width
        site.ledger[home_index].books.favor = favored_fast(
            site.ledger[home_index].books.favor, 0.0, kept * width
        )
    if home.ledger != NULL:
        home.ledger[index].books.given += kept * width
        home.ledger[index].books.favor = favored_fast(
            home.ledger[index].books.favor, kept * width, 0.0
        )
        if home.transfer[index].constrained and home.transfer[index].rails.promise:
            ledger_return(&home.ledger[index], &federation.delegated, jobs, job)
    if home.strict != NULL:
        lost_fast(
            home.strict, &home.ledger[index].trust, (elapsed - kept) * width,
            home.core.view.processors, now,
        )
        if kept == 0.0 and federation.empty_returns[job] < 127:
            federation.empty_returns[job] += 1
    federation.left_request[job] += home.restart - kept
    federation.left_run[job] += home.restart - kept
    federation.executed_on[job] = home_index
    jobs.start_time[job] = NAN
    if home.account != NULL:
        home.account.early_known = False
    core_set_clock(&home.core, now)
    core_return(&home.core, job)
    home.returned = federation.any_returned = True
    return 0


cdef inline int take_preempted(
    Federation* federation, site_index_t index, seconds_t now
) except -1 nogil:
    # Those who have lost their processors in the last passes of a site go home.
    cdef SiteRun* site = &federation.sites[index]
    cdef Py_ssize_t i
    for i in range(site.core.preempted.count):
        send_home(federation, index, site.core.preempted.job[i], now)
    site.core.preempted.count = 0
    return 0


cdef inline int settle_returned(Federation* federation, seconds_t now) except -1 nogil:
    # Passes of all sites that need one, in order, again and again until none is left.
    cdef SiteRun* site
    cdef Py_ssize_t index
    while federation.any_returned:
        federation.any_returned = False
        for index in range(federation.count):
            site = &federation.sites[index]
            if not site.returned:
                continue
            site.returned = False
            core_set_clock(&site.core, now)
            core_pass(&site.core)
            due_set(&federation.due, index, core_next_time(&site.core))
            if site.core.preempted.count > 0:
                take_preempted(federation, <site_index_t> index, now)
                due_set(&federation.due, index, core_next_time(&site.core))
    return 0


cdef inline int look_at(Federation* federation, seconds_t now) except -1 nogil:
    # The accounts that are due at a moment: first all shadows, then all turns, then passes.
    cdef SiteRun* site
    cdef Py_ssize_t index, i
    cdef double spare, owed
    cdef int turned
    for index in range(federation.count):
        site = &federation.sites[index]
        if site.account != NULL and site.next_look <= now:
            account_look(site.account, now)
    for index in range(federation.count):
        site = &federation.sites[index]
        if site.account == NULL or site.next_look > now:
            continue
        site.next_look = next_multiple(now, site.account.rules.period)
        if site.strict.account != GUESTS_PREEMPTED:
            continue    # the account is asked about each guest
        spare = site.account.saved + site.account.rules.allowance * site.account.base
        owed = owed_now(federation, site, <site_index_t> index, now, spare)
        turned = account_turn(site.account, owed, now)
        if turned == 0:
            continue
        core_set_clock(&site.core, now)
        for i in range(site.guest_count):
            if turned < 0:
                core_hide(&site.core, site.guests[i])
            else:
                core_show(&site.core, site.guests[i])
        if turned < 0:
            site.returned = federation.any_returned = True
    return settle_returned(federation, now)


cdef inline seconds_t first_multiple(seconds_t now, seconds_t period) noexcept nogil:
    # The first multiple that is not before now.
    return period * ceil(now / period)


cdef inline seconds_t next_multiple(seconds_t now, seconds_t period) noexcept nogil:
    # The first multiple after now.
    cdef seconds_t time = first_multiple(now, period)
    return time if time > now else time + period
