"""Arrivals of a federation replayed: what its machines do until each, and where each job goes.

At one instant completions come first, then queue starts, on all sites; then arrivals in order
(submit time, site order, job order), each decided completely, with the receiving machine's pass,
before the next. Machines only interact in decisions, so between two arrivals each advances by
itself. A machine whose discipline makes passes per event takes the ends of an instant after its
arrivals, as it does alone.
"""

from libc.math cimport INFINITY, floor
from libc.stdint cimport int8_t, int32_t
from libc.string cimport memset

from grms.federation._due cimport due_next, due_set
from grms.federation._ledger cimport (
    PartnerBooks,
    PartnerNotes,
    ledger_delegate,
    ledger_review,
    misreported,
)
from grms.federation._order cimport (
    Asking,
    asking_begins,
    close_job,
    learn,
    next_partner,
    open_job,
    order_now,
    take_all_turns,
    take_turn_of_met,
)
from grms.federation._own_account cimport account_ended, account_submitted
from grms.federation._byzantine cimport ByzantineNotes, byzantine_hold
from grms.federation._rebalancing cimport (
    RoundNotes,
    rounds_add,
    rounds_begin,
    rounds_declined,
    rounds_order,
    rounds_spare,
)
from grms.federation._sites cimport (
    Federation,
    SiteRun,
    book_given,
    book_taken,
    books_of,
    books_seen,
    let_go,
    giving,
    is_down,
    keeps_notes,
    notes_of,
    notes_seen,
    taking,
)
from grms.federation._tariffs cimport costs_less, order_by_cost, tariff_bound, tariff_cost
from grms.federation._wide_area cimport (
    A_REPORT,
    AskingJob,
    Message,
    WideArea,
    asking_done,
    asking_new,
    message_send,
    message_take,
    next_message,
    one_way,
    question_is_lost,
)
from grms.federation._strict cimport (
    affords,
    first_multiple,
    guest_add,
    guest_remove,
    guest_start,
    look_at,
    next_multiple,
    room_for,
    send_home,
    settle_returned,
    take_preempted,
    width_ended,
)
from grms.policy._decisions cimport site_index_t
from grms.policy._decisions cimport KnownJob, SiteLoad, TransferPolicy, accept_fast, inner_fast
from grms.policy._constraints cimport (
    DECLINED,
    GUESTS_PREEMPTED,
    GUESTS_RUN,
    Books,
    Trust,
    handing_fast,
    may_offer_fast,
)
from lrms_sim.kernel._machine cimport (
    JobColumns,
    core_advance,
    core_enqueue,
    core_idle,
    core_job_fits,
    core_job_starts_now,
    core_next_time,
    core_pass,
    core_set_clock,
    core_withdraw,
)
from lrms_sim.kernel._queue cimport WaitingQueue
from lrms_sim.kernel._types cimport job_index_t, seconds_t
from lrms_sim.kernel._view cimport View


cdef int job_ended(
    Federation* federation, site_index_t index, job_index_t job
) except -1 nogil:
    # A job has ended at a site, which tells its home; each records what it keeps of it.
    cdef SiteRun* site = &federation.sites[index]
    cdef SiteRun* home = &federation.sites[federation.submitted_to[job]]
    cdef JobColumns* jobs = &federation.jobs
    cdef double worked, consumption, left, reported
    if site.rogue != NULL and site.rogue.returns and federation.submitted_to[job] != index:
        return send_home(federation, index, job, site.core.view.now)
    worked = consumption = federation.whole_run[job] * jobs.processors[job]
    left = reported = jobs.run_time[job] * jobs.processors[job]
    if federation.submitted_to[job] != index:
        if site.rogue != NULL and site.rogue.lies:
            reported = misreported(&federation.delegated, jobs, job) * jobs.processors[job]
            consumption = reported + (worked - left)
        if federation.strict:
            guest_remove(site, job)
        if home.count_open:
            close_job(home, index, jobs, job)
        if federation.constrained:
            book_taken(federation, site, job, left)
        if federation.wide.used:
            return message_send(
                &federation.wide,
                jobs.end_time[job] + one_way(
                    &federation.wide, federation.submitted_to[job], index
                ),
                job, A_REPORT,
            )
        learn(federation, home, index, consumption, jobs.end_time[job] - jobs.submit_time[job])
    if federation.constrained:
        book_given(federation, index, job, consumption, reported)
    if home.account != NULL:
        account_ended(home.account, job, federation.whole_run[job])
        if home.ended_by_width != NULL:
            width_ended(home, jobs.processors[job], worked)
    return 0


cdef int advance_site(
    Federation* federation, site_index_t index, seconds_t until, bint inclusive
) except -1 nogil:
    # Advances one machine and reports results of other sites' jobs to those sites.
    cdef SiteRun* site = &federation.sites[index]
    cdef job_index_t job
    cdef Py_ssize_t i
    core_advance(&site.core, until, inclusive)
    if until < INFINITY:
        core_set_clock(&site.core, until)    # a load that is asked for is that of this moment
    due_set(&federation.due, index, core_next_time(&site.core))
    for i in range(site.core.ended.count):
        job = site.core.ended.job[i]
        # Constraints alone, of which accounts are a part, keep records of jobs that ran at home.
        if federation.submitted_to[job] != index or federation.constrained:
            job_ended(federation, index, job)
    site.core.ended.count = 0
    if site.core.preempted.count > 0:
        take_preempted(federation, index, site.core.view.now)
        due_set(&federation.due, index, core_next_time(&site.core))
    return 0


cdef int advance_due(Federation* federation, seconds_t now) except -1 nogil:
    cdef Py_ssize_t index
    cdef seconds_t time
    while federation.strict and federation.due.least[1] < now:
        # Machines send each other jobs at any event, so that they go on together.
        time = federation.due.least[1]
        index = due_next(&federation.due, 0, time)
        while index >= 0:
            advance_site(federation, <site_index_t> index, time, True)
            index = due_next(&federation.due, index + 1, time)
        settle_returned(federation, time)
    if now == INFINITY:
        return 0    # nobody is due then
    index = due_next(&federation.due, 0, now)
    while index >= 0:
        advance_site(
            federation, <site_index_t> index, now, not federation.sites[index].core.ops.per_event
        )
        index = due_next(&federation.due, index + 1, now)
    if federation.any_returned:
        settle_returned(federation, now)
    return 0


cdef inline int advance_all(Federation* federation, seconds_t now) except -1 nogil:
    # To a moment, before its arrivals: those with anything to do, in site order.
    if federation.due.least[1] > now and not federation.any_returned:
        return 0
    return advance_due(federation, now)


cdef inline void know_load(
    SiteRun* site, KnownJob job, bint waits, SiteLoad* load
) noexcept nogil:
    # What a site looks at when it decides: its own load,
    cdef const View* view = &site.core.view
    load.processors = view.processors
    load.processors_free = view.processors_free
    load.processors_waiting = view.processors_waiting
    if waits:
        load.processors_waiting -= job.processors
    load.starts_now = False
    load.fits = core_job_fits(&site.core, job.number, job.processors)
    load.nodes = NULL
    if site.shape != NULL:
        site.totals.job_memory = site.memory[site.shape[job.number]]
        site.totals.job_gpus = site.gpus[site.shape[job.number]]
        load.nodes = &site.totals


cdef inline void know_books(SiteRun* site, site_index_t other, Books* books) noexcept nogil:
    # and, within constraints, its own books about that partner.
    cdef const PartnerBooks* seen
    books.own_work = books.own_requested = books.taken = books.given = 0.0
    if keeps_notes(site):
        books.own_work = site.own_work
        books.own_requested = site.own_requested
        seen = books_seen(site, other)
        if seen != NULL:
            books.taken = seen.taken
            books.given = seen.given


cdef bint wants_within(
    SiteRun* site, const TransferPolicy* policy, site_index_t other, KnownJob job, SiteLoad* load,
    seconds_t now, bint ask, bint own,
) noexcept nogil:
    # As `wants`, of a policy within constraints.
    cdef Books books
    know_books(site, other, &books)
    if ask and policy.rails.start_now:
        site.core.view.now = now    # nothing of its own is due there, or it has been done
        load.starts_now = core_job_starts_now(
            &site.core, job.number, job.processors, job.requested_time
        )
    return accept_fast(policy, job, load, &books, own)


cdef inline bint wants(
    SiteRun* site, site_index_t other, KnownJob job, seconds_t now, bint ask, bint own, bint waits
) noexcept nogil:
    # Whether a site wants to run a job itself, by its own policy for another site, its own load
    # and its own books. A job that `waits` is in the queue, and does not count itself.
    cdef const TransferPolicy* policy = giving(site, other) if own else taking(site, other)
    cdef SiteLoad load
    know_load(site, job, waits, &load)
    if policy.constrained:
        return wants_within(site, policy, other, job, &load, now, ask, own)
    return inner_fast(policy, job, &load, own)


cdef bint takes(
    SiteRun* site, site_index_t other, KnownJob job, seconds_t now, const seconds_t* checkpoint,
    const site_index_t* owner, int8_t* handing,
) noexcept nogil:
    # Whether a site whose batch system can preempt takes a partner's job; how, it notes by job.
    cdef const TransferPolicy* policy = taking(site, other)
    cdef SiteLoad load
    cdef Books books
    if job.processors > core_idle(&site.core) and not (
        policy.rails.favors and job.processors <= room_for(site, owner, other)
    ):
        return False
    know_load(site, job, False, &load)
    know_books(site, other, &books)
    if site.account.in_credit:
        site.core.view.now = now
        load.starts_now = core_job_starts_now(
            &site.core, job.number, job.processors, job.requested_time
        )
    handing[job.number] = handing_fast(
        &policy.rails, job.processors, job.requested_time,
        0.0 if checkpoint == NULL else checkpoint[job.number],
        load.processors, &books, site.account.in_credit, load.starts_now,
    )
    load.starts_now = True    # as a guest; also where the batch system would let others go first
    return handing[job.number] != DECLINED and inner_fast(policy, job, &load, False)


cdef bint answers(
    Federation* federation, site_index_t index, site_index_t home_index, KnownJob job,
    seconds_t now,
) noexcept nogil:
    # A partner's answer to an offer: yes or no.
    cdef SiteRun* partner = &federation.sites[index]
    cdef const TransferPolicy* policy = taking(partner, home_index)
    cdef const ByzantineNotes* rogue = federation.sites[home_index].rogue
    cdef const seconds_t* checkpoint = federation.checkpoint
    if rogue != NULL and rogue.hides:
        checkpoint = NULL
    if policy.constrained and policy.rails.account == GUESTS_PREEMPTED:
        return takes(
            partner, home_index, job, now,
            checkpoint,
            federation.submitted_to, federation.handing,
        )
    return wants(partner, home_index, job, now, True, False, False) and (
        not policy.constrained or policy.rails.account != GUESTS_RUN
        or affords(federation, partner, index, job, now)
    )


cdef inline bint entrusts(
    Federation* federation, SiteRun* home, site_index_t index, KnownJob job, seconds_t now
) noexcept nogil:
    # Whether the home site trusts a partner enough to offer it a job.
    cdef const TransferPolicy* policy = giving(home, index)
    cdef PartnerNotes* ledger
    cdef Trust unknown
    if not (policy.constrained and policy.rails.promise):
        return True
    ledger = notes_seen(home, index)
    if ledger == NULL:
        memset(&unknown, 0, sizeof(Trust))
        return may_offer_fast(
            &policy.rails, &unknown, now, job.processors, job.requested_time,
            home.core.view.processors,
        )
    ledger_review(ledger, &policy.rails, &federation.delegated, &federation.jobs, now)
    return may_offer_fast(
        &policy.rails, &ledger.trust, now, job.processors, job.requested_time,
        home.core.view.processors,
    )


cdef void choose_written(Federation* federation, SiteRun* home) noexcept with gil:
    # Lets a location policy in Python order the partners; after a failure the order stays.
    failures = <list> federation.failures
    cdef Py_ssize_t i
    cdef Py_ssize_t count = federation.count
    if failures:
        return
    try:
        order = (<object> home.chooser)(
            [home.consumption[i] for i in range(count)],
            [home.weighted_response[i] for i in range(count)],
        )
        home.partner_count = 0
        for i in order:
            home.partners[home.partner_count] = <site_index_t> i
            home.partner_count += 1
    except BaseException as error:
        failures.append(error)


cdef inline void order_by_tariff(
    Federation* federation, SiteRun* home, KnownJob job, seconds_t now
) noexcept nogil:
    # The cheapest partner for this job first. Tariffs are public, like sizes.
    cdef site_index_t index
    cdef Py_ssize_t i
    tariff_bound(
        home.cheapest, &home.tariff, job, now, federation.jobs.submit_time[job.number]
    )
    for i in range(home.partner_count):
        index = home.partners[i]
        home.cheapest.cost[index] = tariff_cost(
            &federation.sites[index].tariff, &home.cheapest.deferral, now, job.requested_time
        )
    order_by_cost(home.cheapest, home.partners, home.partner_count)


cdef inline bint partner_holds(const SiteRun* partner, int32_t shape) noexcept nogil:
    # Whether its nodes could run such a job if they were empty, which is known like its size.
    return partner.holds == NULL or partner.holds[shape]


cdef bint offer(
    Federation* federation, site_index_t home_index, site_index_t index, site_index_t noted,
    KnownJob job, seconds_t now, bint waits,
) noexcept nogil:
    # Asks a partner to take a job, and notes that it was asked.
    cdef SiteRun* home = &federation.sites[home_index]
    cdef SiteRun* partner = &federation.sites[index]
    home.offers += 1
    if home.asked_now != NULL:
        home.asked_now[home.asked_count] = noted
        home.asked_count += 1
    if waits and home.rounds != NULL:
        home.rounds.left -= 1
    if partner.down_count > 0 and is_down(partner, now):
        pass    # no answer
    elif giving(partner, home_index) != NULL and answers(
        federation, index, home_index, job, now
    ):
        return True
    if waits and home.rounds != NULL:
        rounds_declined(home.rounds, index, job.processors, job.requested_time, now)
    return False


cdef site_index_t ask_partners(
    Federation* federation, site_index_t home_index, KnownJob job, seconds_t now, bint waits
) noexcept nogil:
    # The partner that takes a job submitted at `home_index`, else home. Each party uses its own
    # load and books only; of a partner the home site knows its size and its answer.
    cdef SiteRun* home = &federation.sites[home_index]
    cdef site_index_t index
    cdef bint ask = not waits        # the answer for one partner is that for all
    cdef Py_ssize_t questions = home.partners_asked
    cdef Asking asking
    cdef site_index_t noted = -1
    cdef const TransferPolicy* policy
    if federation.shape != NULL and home.tells != NULL and (
        not home.tells[federation.shape[job.number]]
    ):
        return home_index
    if home.down_count > 0 and is_down(home, now):
        return home_index
    asking = asking_begins(federation, home, home_index, job.processors)
    while True:
        index = next_partner(federation, home, home_index, job.processors, &asking, &noted)
        if index < 0:
            break
        policy = giving(home, index)
        if job.processors > federation.processors[index] or policy == NULL:
            continue
        if federation.shape != NULL and not partner_holds(
            &federation.sites[index], federation.shape[job.number]
        ):
            continue
        if not costs_less(home.cheapest, index):
            if home.cheapest != NULL and home.cheapest.only:
                break
            if wants(home, index, job, now, ask, True, waits):
                return home_index
            if policy.rails.start_now:
                ask = False
        if waits and home.rounds != NULL and rounds_spare(
            home.rounds, index, job.processors, job.requested_time, now
        ):
            continue
        if not entrusts(federation, home, index, job, now):
            continue
        if offer(federation, home_index, index, noted, job, now, waits):
            return index
        questions -= 1
        if questions == 0:
            break
    return home_index


cdef int order_partners(
    Federation* federation, SiteRun* home, KnownJob job, seconds_t now
) except -1 nogil:
    # The order of this moment, or for this job.
    if home.cheapest != NULL:
        order_by_tariff(federation, home, job, now)
    elif home.chooser != NULL:
        choose_written(federation, home)
    else:
        order_now(home, now)
    return 0


cdef inline site_index_t decide(
    Federation* federation, site_index_t home_index, KnownJob job, seconds_t now, bint waits
) except -1 nogil:
    # Where a job submitted at `home_index` runs (FIG. 2 of the paper); one that waits there
    # already does not start there now.
    cdef SiteRun* home = &federation.sites[home_index]
    cdef site_index_t target
    if home.strict != NULL and (
        federation.empty_returns[job.number] >= home.strict.empty_returns
    ):
        return home_index
    if home.cheapest != NULL or home.chooser != NULL or home.count_open:
        order_partners(federation, home, job, now)
    target = ask_partners(federation, home_index, job, now, waits)
    if home.asked_count > 0:
        take_all_turns(federation, home)
    return target


cdef int machine_pass(Federation* federation, site_index_t index, seconds_t now) except -1 nogil:
    # A machine makes the pass that an arrival or a withdrawal has left pending.
    cdef SiteRun* site = &federation.sites[index]
    core_pass(&site.core)
    if site.core.preempted.count > 0:
        take_preempted(federation, index, now)
    due_set(&federation.due, index, core_next_time(&site.core))
    return 0


cdef inline int run_at(
    Federation* federation, site_index_t index, job_index_t job, seconds_t now
) except -1 nogil:
    # A job joins the queue of the machine that will run it, which makes its pass.
    cdef SiteRun* site = &federation.sites[index]
    core_set_clock(&site.core, now)
    core_enqueue(&site.core, job)
    return machine_pass(federation, index, now)


cdef int place_guest(
    Federation* federation, site_index_t home_index, site_index_t target, job_index_t job,
    seconds_t now,
) except -1 nogil:
    # As `place`, of a job that a partner has accepted.
    cdef JobColumns* jobs = &federation.jobs
    cdef SiteRun* site = &federation.sites[target]
    cdef SiteRun* home = &federation.sites[home_index]
    cdef const TransferPolicy* policy = taking(site, home_index)
    cdef PartnerBooks* books
    cdef PartnerNotes* notes
    if site.strict != NULL and site.takes == site.transfer:
        if site.strict.account == GUESTS_RUN:
            guest_add(site, job)
    if site.rogue != NULL and site.rogue.holds:
        byzantine_hold(site.rogue, job)
    elif policy.constrained and policy.rails.account == GUESTS_PREEMPTED:
        guest_start(federation, site, job, now)
        if site.core.preempted.count > 0:
            take_preempted(federation, target, now)
        due_set(&federation.due, target, core_next_time(&site.core))
    else:
        run_at(federation, target, job, now)
    if federation.lied_to:
        federation.delegated.since[job] = now
    if home.count_open:
        open_job(home, target, jobs, job)
    if federation.constrained:
        if keeps_notes(site):
            books = books_of(site, home_index)
            books.taken += jobs.requested_time[job] * jobs.processors[job]
        policy = giving(home, target)
        if policy.constrained and policy.rails.promise:
            notes = notes_of(home, target)
            if home.met == NULL and notes.capacity == 0:
                notes.after = home.delegated_to
                home.delegated_to = notes
            ledger_delegate(notes, &policy.rails, &federation.delegated, jobs, job, now)
    return 0


cdef inline int place(
    Federation* federation, site_index_t home_index, site_index_t target, job_index_t job,
    seconds_t now,
) except -1 nogil:
    # Gives a job to the machine that will run it.
    federation.executed_on[job] = target
    if home_index != target:
        return place_guest(federation, home_index, target, job, now)
    return run_at(federation, target, job, now)


cdef inline site_index_t list_partners(
    Federation* federation, site_index_t home_index, KnownJob job, int32_t row, seconds_t now
) noexcept nogil:
    # Whom the home site asks first about a job, as `ask_partners`; itself if it wants to run the
    # job, or knows nobody to ask. It notes whom it asks afterwards.
    cdef WideArea* wide = &federation.wide
    cdef AskingJob* asking_job = &wide.asking[row]
    cdef SiteRun* home = &federation.sites[home_index]
    cdef Py_ssize_t questions = home.partners_asked if home.partners_asked > 0 else wide.most
    cdef site_index_t index
    cdef site_index_t noted = -1
    cdef bint ask = True
    cdef Asking asking = asking_begins(federation, home, home_index, job.processors)
    while asking_job.listed < questions:
        index = next_partner(federation, home, home_index, job.processors, &asking, &noted)
        if index < 0:
            break
        if job.processors > federation.processors[index]:
            continue
        if asking_job.listed == 0:
            if wants(home, index, job, now, ask, True, False):
                return home_index
            if home.policy.rails.start_now:
                ask = False
        if entrusts(federation, home, index, job, now):
            wide.listed[row * wide.most + asking_job.listed] = index
            asking_job.listed += 1
    return wide.listed[row * wide.most] if asking_job.listed > 0 else home_index


cdef inline site_index_t next_listed(
    Federation* federation, site_index_t home_index, KnownJob job, int32_t row, seconds_t now
) noexcept nogil:
    # And whom after that; whether it would rather run the job, and whom it trusts, may be new.
    cdef WideArea* wide = &federation.wide
    cdef AskingJob* asking_job = &wide.asking[row]
    cdef SiteRun* home = &federation.sites[home_index]
    cdef site_index_t index
    cdef bint ask = True
    while asking_job.next_one < asking_job.listed:
        index = wide.listed[row * wide.most + asking_job.next_one]
        if wants(home, index, job, now, ask, True, False):
            return home_index
        if home.policy.rails.start_now:
            ask = False
        if entrusts(federation, home, index, job, now):
            return index
        asking_job.next_one += 1
    return home_index


cdef inline int ask_next(
    Federation* federation, job_index_t job, int32_t row, seconds_t now
) except -1 nogil:
    # The home site of a job asks the next partner about it, or runs it itself.
    cdef WideArea* wide = &federation.wide
    cdef AskingJob* asking_job = &wide.asking[row]
    cdef site_index_t home_index = federation.submitted_to[job]
    cdef SiteRun* home = &federation.sites[home_index]
    cdef site_index_t index = home_index
    cdef KnownJob request
    request.processors = federation.jobs.processors[job]
    request.requested_time = federation.jobs.requested_time[job]
    request.number = job
    if home.down_count > 0 and is_down(home, now):
        pass    # it asks nobody
    elif asking_job.listed == 0:
        index = list_partners(federation, home_index, request, row, now)
    else:
        index = next_listed(federation, home_index, request, row, now)
    if index == home_index:
        asking_done(wide, row)
        return place(federation, home_index, home_index, job, now)
    home.offers += 1
    take_turn_of_met(federation, home, index)
    asking_job.next_one += 1
    asking_job.arrives = not question_is_lost(wide, job, index)
    return message_send(
        wide,
        now + (one_way(wide, home_index, index) if asking_job.arrives else wide.timeout),
        job, row,
    )


cdef inline int question_arrives(
    Federation* federation, job_index_t job, int32_t row, seconds_t now
) except -1 nogil:
    # A partner answers an offer by what it is now. Who has left the exchange does not.
    cdef WideArea* wide = &federation.wide
    cdef site_index_t home_index = federation.submitted_to[job]
    cdef site_index_t index = wide.listed[row * wide.most + wide.asking[row].next_one - 1]
    cdef SiteRun* partner = &federation.sites[index]
    cdef seconds_t takes = one_way(wide, home_index, index)
    cdef KnownJob request
    request.processors = federation.jobs.processors[job]
    request.requested_time = federation.jobs.requested_time[job]
    request.number = job
    wide.asking[row].arrives = False
    if partner.down_count > 0 and is_down(partner, now):
        takes = wide.timeout - takes if takes < wide.timeout else 0.0
    elif answers(federation, index, home_index, request, now):
        asking_done(wide, row)
        return place(federation, home_index, index, job, now)
    return message_send(wide, now + takes, job, row)


cdef inline int report_arrives(Federation* federation, job_index_t job) except -1 nogil:
    # The home of a job is told that it has ended elsewhere.
    cdef JobColumns* jobs = &federation.jobs
    cdef site_index_t index = federation.executed_on[job]
    cdef double consumption = federation.whole_run[job] * jobs.processors[job]
    learn(
        federation, &federation.sites[federation.submitted_to[job]], index, consumption,
        jobs.end_time[job] - jobs.submit_time[job],
    )
    if federation.constrained:
        book_given(federation, index, job, consumption, consumption)
    return 0


cdef int carry_messages(Federation* federation, seconds_t until) except -1 nogil:
    # All messages up to a moment; at each moment after the events of the machines.
    cdef WideArea* wide = &federation.wide
    cdef Message message
    cdef seconds_t now
    while True:
        now = next_message(wide)
        if federation.due.least[1] < now:
            # At once, as it may send messages that arrive before.
            now = federation.due.least[1]
        if now > until or now == INFINITY:
            return 0
        advance_all(federation, now)
        while next_message(wide) <= now:
            message = message_take(wide)
            if message.asking == A_REPORT:
                report_arrives(federation, message.job)
            elif wide.asking[message.asking].arrives:
                question_arrives(federation, message.job, message.asking, now)
            else:
                ask_next(federation, message.job, message.asking, now)


cdef inline int offer_waiting(
    Federation* federation, site_index_t index, Py_ssize_t slot, seconds_t now
) except -1 nogil:
    # Offers a waiting job; an accepted one leaves the queue.
    cdef SiteRun* site = &federation.sites[index]
    cdef WaitingQueue* queue = &site.core.view.queue
    cdef job_index_t job = queue.job[slot]
    cdef KnownJob request
    cdef site_index_t target
    request.processors = queue.width[slot]
    request.requested_time = queue.request[slot]
    request.number = job
    target = decide(federation, index, request, now, True)
    if target != index:
        core_withdraw(&site.core, slot)
        place(federation, index, target, job, now)
    return 0


cdef int offer_again(Federation* federation, site_index_t index, seconds_t now) except -1 nogil:
    # A site offers its own users' waiting jobs once to its partners, in queue order.
    cdef SiteRun* site = &federation.sites[index]
    cdef WaitingQueue* queue = &site.core.view.queue
    cdef RoundNotes* rounds = site.rounds
    cdef Py_ssize_t slot, i
    cdef job_index_t job
    core_set_clock(&site.core, now)
    if rounds != NULL:
        rounds_begin(rounds, queue.tail - queue.head)
    for slot in range(queue.head, queue.tail):
        job = queue.job[slot]
        if job < 0 or federation.submitted_to[job] != index:
            continue
        if rounds != NULL:
            rounds_add(
                rounds, slot, queue.width[slot], queue.request[slot], &federation.pause_row[job]
            )
        else:
            offer_waiting(federation, index, slot, now)
    if rounds != NULL:
        rounds_order(rounds)
        for i in range(rounds.count):
            if rounds.left == 0:
                break
            rounds.row = rounds.waiting[i].row
            offer_waiting(federation, index, rounds.waiting[i].slot, now)
    if site.core.pass_pending:
        machine_pass(federation, index, now)
    return 0


cdef int hold_rounds(Federation* federation, seconds_t until) except -1 nogil:
    # The rounds of offers up to a moment, before its arrivals: each site at the multiples of its
    # period, after the events of the machines.
    cdef SiteRun* site
    cdef site_index_t index
    cdef seconds_t now
    cdef Py_ssize_t waiting
    while until == INFINITY or federation.round_time <= until:
        now = INFINITY
        waiting = 0
        for index in range(<site_index_t> federation.count):
            site = &federation.sites[index]
            if site.reoffer > 0.0:
                waiting += site.core.view.queue.count
                if site.next_round < now:
                    now = site.next_round
        federation.round_time = now
        if now > until or waiting == 0 and until == INFINITY:
            return 0
        if waiting > 0:
            advance_all(federation, now)
        for index in range(<site_index_t> federation.count):
            site = &federation.sites[index]
            if site.reoffer > 0.0 and site.next_round <= now:
                if site.core.view.queue.count > 0:
                    offer_again(federation, index, now)
                # Without waiting jobs there is nothing to offer: on to the next arrival.
                site.next_round = site.reoffer * (
                    1.0 + floor((until if waiting == 0 else now) / site.reoffer)
                )
    return 0


cdef int hold_strict_rounds(Federation* federation, seconds_t until) except -1 nogil:
    # As `hold_rounds` where sites keep accounts: at one moment first these, then the rounds.
    cdef SiteRun* site
    cdef site_index_t index
    cdef seconds_t now
    cdef Py_ssize_t waiting
    while until == INFINITY or federation.round_time <= until:
        now = INFINITY
        waiting = 0
        for index in range(<site_index_t> federation.count):
            site = &federation.sites[index]
            waiting += site.core.view.queue.count
            if site.reoffer > 0.0 and site.next_round < now:
                now = site.next_round
            if site.account != NULL and site.next_look < now:
                now = site.next_look
        federation.round_time = now
        if now > until or waiting == 0 and until == INFINITY:
            return 0
        advance_all(federation, now)
        look_at(federation, now)
        for index in range(<site_index_t> federation.count):
            site = &federation.sites[index]
            if site.reoffer > 0.0 and site.next_round <= now:
                site.next_round = next_multiple(now, site.reoffer)
                if site.core.view.queue.count > 0:
                    offer_again(federation, index, now)
                    settle_returned(federation, now)
    return 0


cdef void begin_strict(Federation* federation) noexcept nogil:
    # Accounts and rounds begin with the first arrival.
    cdef SiteRun* site
    cdef Py_ssize_t index
    cdef seconds_t first = federation.jobs.submit_time[0]
    federation.round_time = -INFINITY
    for index in range(federation.count):
        site = &federation.sites[index]
        if site.reoffer > 0.0:
            site.next_round = first_multiple(first, site.reoffer)
        if site.account != NULL:
            site.next_look = first_multiple(first, site.account.rules.period)


cdef int replay(Federation* federation, Py_ssize_t row, Py_ssize_t stop) except -1 nogil:
    cdef JobColumns* jobs = &federation.jobs
    cdef site_index_t home_index, target
    cdef KnownJob request
    cdef seconds_t now
    if row == 0 and stop > 0 and federation.strict:
        begin_strict(federation)
    while row < stop:
        now = jobs.submit_time[row]
        if federation.strict:
            hold_strict_rounds(federation, now)
        elif federation.rounds:
            hold_rounds(federation, now)
        if federation.wide.used:
            carry_messages(federation, now)
            ask_next(federation, <job_index_t> row, asking_new(&federation.wide), now)
            carry_messages(federation, now)
            row += 1
            continue
        advance_all(federation, now)
        home_index = federation.submitted_to[row]
        request.processors = jobs.processors[row]
        request.requested_time = jobs.requested_time[row]
        request.number = <job_index_t> row
        target = decide(federation, home_index, request, now, False)
        place(federation, home_index, target, <job_index_t> row, now)
        if federation.strict:
            settle_returned(federation, now)
            if federation.sites[home_index].account != NULL:
                account_submitted(federation.sites[home_index].account, <job_index_t> row)
        row += 1
    return 0


cdef int drain(Federation* federation, Py_ssize_t count) except -1 nogil:
    # After the last of so many arrivals: until every machine is idle.
    cdef site_index_t index
    if count > 0:
        let_go(federation, federation.jobs.submit_time[count - 1])
    if federation.strict and count > 0:
        hold_strict_rounds(federation, INFINITY)
        advance_all(federation, INFINITY)
    elif federation.rounds:
        hold_rounds(federation, INFINITY)
    elif federation.wide.used:
        carry_messages(federation, INFINITY)
    for index in range(<site_index_t> federation.count):
        advance_site(federation, index, INFINITY, True)
    return 0
