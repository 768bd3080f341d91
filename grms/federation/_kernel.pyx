"""The federation kernel: K machines and their policies replayed on one clock, without the GIL.

At one instant completions come first, then queue starts, on all sites; then arrivals in order
(submit time, site order, job order), each decided completely, with the receiving machine's pass,
before the next. Machines only interact in decisions, so between two arrivals each advances by
itself. A machine whose discipline makes passes per event takes the ends of an instant after its
arrivals, as it does alone.
"""

from libc.math cimport INFINITY, NAN, floor
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from grms.federation._due cimport due_close, due_next, due_open, due_set
from grms.federation._ledger cimport (
    PartnerBooks,
    PartnerNotes,
    delegated_room,
    ledger_delegate,
    ledger_review,
    misreported,
)
from grms.federation._met_partners cimport start_at_itself
from grms.federation._order cimport (
    Asking,
    asking_begins,
    close_job,
    learn,
    next_partner,
    open_job,
    order_now,
    take_turn_of_met,
    take_turns,
    take_turns_of_met,
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
    byzantine_make,
    giving,
    is_down,
    keeps_notes,
    notes_of,
    notes_seen,
    site_account,
    site_alloc,
    site_bound,
    site_free,
    site_order,
    site_policies,
    site_rounds,
    strict_bind,
    strict_free,
    sum_responses,
    taking,
)
from grms.federation._tariffs cimport (
    costs_less,
    order_by_cost,
    tariff_bound,
    tariff_cost,
    tariffs_open,
)
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
    wide_area_close,
)
from grms.federation._widths cimport widths_open
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
from grms.policy._decisions cimport (
    CompiledTransfer,
    KnownJob,
    SiteLoad,
    TransferPolicy,
    accept_fast,
    inner_fast,
    site_index_t,
)
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
    core_bind,
    core_enqueue,
    core_idle,
    core_job_fits,
    core_job_starts_now,
    core_next_time,
    core_open,
    core_pass,
    core_set_clock,
    core_withdraw,
)
from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._queue cimport WaitingQueue
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View


cdef int advance_site(
    Federation* federation, site_index_t index, seconds_t until, bint inclusive
) except -1 nogil:
    # Advances one machine and reports results of other sites' jobs to those sites.
    cdef SiteRun* site = &federation.sites[index]
    cdef JobColumns* jobs = &federation.jobs
    cdef SiteRun* home
    cdef job_index_t job
    cdef double worked, consumption, left, reported
    cdef Py_ssize_t i
    core_advance(&site.core, until, inclusive)
    if until < INFINITY:
        core_set_clock(&site.core, until)    # a load that is asked for is that of this moment
    due_set(&federation.due, index, core_next_time(&site.core))
    for i in range(site.core.ended.count):
        job = site.core.ended.job[i]
        if site.rogue != NULL and site.rogue.returns and federation.submitted_to[job] != index:
            send_home(federation, index, job, site.core.view.now)
            continue
        worked = consumption = federation.whole_run[job] * jobs.processors[job]
        left = reported = jobs.run_time[job] * jobs.processors[job]
        home = &federation.sites[federation.submitted_to[job]]
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
                message_send(
                    &federation.wide,
                    jobs.end_time[job] + one_way(
                        &federation.wide, federation.submitted_to[job], index
                    ),
                    job, A_REPORT,
                )
                continue
            learn(federation, home, index, consumption, jobs.end_time[job] - jobs.submit_time[job])
        if federation.constrained:
            book_given(federation, index, job, consumption, reported)
        if home.account != NULL:
            account_ended(home.account, job, federation.whole_run[job])
            if home.ended_by_width != NULL:
                width_ended(home, jobs.processors[job], worked)
    site.core.ended.count = 0
    if site.core.preempted.count > 0:
        take_preempted(federation, index, site.core.view.now)
        due_set(&federation.due, index, core_next_time(&site.core))
    return 0


cdef inline int advance_all(Federation* federation, seconds_t now) except -1 nogil:
    # To a moment, before its arrivals: those with anything to do, in site order.
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


cdef inline void know_itself(
    SiteRun* site, site_index_t other, KnownJob job, bint waits, SiteLoad* load, Books* books
) noexcept nogil:
    # What a site looks at when it decides: its own load, and its own books about that partner.
    cdef const View* view = &site.core.view
    cdef const PartnerBooks* seen
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
    books.own_work = books.own_requested = books.taken = books.given = 0.0
    if keeps_notes(site):
        books.own_work = site.own_work
        books.own_requested = site.own_requested
        seen = books_seen(site, other)
        if seen != NULL:
            books.taken = seen.taken
            books.given = seen.given


cdef inline bint wants(
    SiteRun* site, site_index_t other, KnownJob job, seconds_t now, bint ask, bint own, bint waits
) noexcept nogil:
    # Whether a site wants to run a job itself, by its own policy for another site, its own load
    # and its own books. A job that `waits` is in the queue, and does not count itself.
    cdef const TransferPolicy* policy = giving(site, other) if own else taking(site, other)
    cdef SiteLoad load
    cdef Books books
    know_itself(site, other, job, waits, &load, &books)
    if policy.constrained and ask and policy.rails.start_now:
        site.core.view.now = now    # nothing of its own is due there, or it has been done
        load.starts_now = core_job_starts_now(
            &site.core, job.number, job.processors, job.requested_time
        )
    return accept_fast(policy, job, load, &books, own)


cdef inline bint takes(
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
    know_itself(site, other, job, False, &load, &books)
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
    return handing[job.number] != DECLINED and inner_fast(policy, job, load, False)


cdef inline bint answers(
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


cdef site_index_t ask_partners(
    Federation* federation, site_index_t home_index, KnownJob job, seconds_t now, bint waits
) noexcept nogil:
    # The partner that takes a job submitted at `home_index`, else home. Each party uses its own
    # load and books only; of a partner the home site knows its size and its answer.
    cdef SiteRun* home = &federation.sites[home_index]
    cdef SiteRun* partner
    cdef site_index_t index
    cdef bint ask = not waits        # the answer for one partner is that for all
    cdef Py_ssize_t questions = home.partners_asked
    cdef int32_t shape = -1 if federation.shape == NULL else federation.shape[job.number]
    cdef Asking asking
    cdef site_index_t noted = -1
    cdef const TransferPolicy* policy
    if shape >= 0 and home.tells != NULL and not home.tells[shape]:
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
        if shape >= 0 and not partner_holds(&federation.sites[index], shape):
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
        partner = &federation.sites[index]
        home.offers += 1
        questions -= 1
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
            return index
        if waits and home.rounds != NULL:
            rounds_declined(home.rounds, index, job.processors, job.requested_time, now)
        if questions == 0:
            break
    return home_index


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
    if home.cheapest != NULL:
        order_by_tariff(federation, home, job, now)
    elif home.chooser != NULL:
        choose_written(federation, home)
    elif home.count_open:
        order_now(home, now)
    target = ask_partners(federation, home_index, job, now, waits)
    if home.asked_count > 0:
        if home.met != NULL:
            take_turns_of_met(federation, home)
        else:
            take_turns(home)
    return target


cdef inline bint preempts(
    const SiteRun* site, site_index_t home_index, site_index_t target
) noexcept nogil:
    # Whether a guest is taken as strict exchange does where the batch system can preempt.
    cdef const TransferPolicy* policy = taking(site, home_index)
    return (
        home_index != target and policy.constrained
        and policy.rails.account == GUESTS_PREEMPTED
    )


cdef inline int place(
    Federation* federation, site_index_t home_index, site_index_t target, job_index_t job,
    seconds_t now,
) except -1 nogil:
    # Gives a job to the machine that will run it, which makes its pass.
    cdef JobColumns* jobs = &federation.jobs
    cdef SiteRun* site = &federation.sites[target]
    cdef SiteRun* home
    cdef const TransferPolicy* policy
    cdef PartnerBooks* books
    cdef PartnerNotes* notes
    federation.executed_on[job] = target
    if home_index != target and site.strict != NULL and site.takes == site.transfer:
        if site.strict.account == GUESTS_RUN:
            guest_add(site, job)
    if site.rogue != NULL and site.rogue.holds and home_index != target:
        byzantine_hold(site.rogue, job)
    elif preempts(site, home_index, target):
        guest_start(federation, site, job, now)
        if site.core.preempted.count > 0:
            take_preempted(federation, target, now)
        due_set(&federation.due, target, core_next_time(&site.core))
    else:
        core_set_clock(&site.core, now)
        core_enqueue(&site.core, job)
        core_pass(&site.core)
        if site.core.preempted.count > 0:
            take_preempted(federation, target, now)
        due_set(&federation.due, target, core_next_time(&site.core))
    if home_index == target:
        return 0
    if federation.lied_to:
        federation.delegated.since[job] = now
    home = &federation.sites[home_index]
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
        core_pass(&site.core)
        if site.core.preempted.count > 0:
            take_preempted(federation, index, now)
        due_set(&federation.due, index, core_next_time(&site.core))
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


SPARSE_FROM = 256


cdef int check_known(
    const int64_t[::1] begin, const site_index_t[::1] known, Py_ssize_t count
) except -1:
    # Who knows whom: of each site its partners in site order.
    cdef Py_ssize_t i, place
    if begin.shape[0] != count + 1 or begin[0] != 0 or begin[count] != known.shape[0]:
        raise ValueError("the lists of partners are of other sites")
    if known.shape[0] == 0:
        raise ValueError("no site knows another one")
    for i in range(count):
        if begin[i] > begin[i + 1]:
            raise ValueError("the lists of partners are of other sites")
        for place in range(begin[i], begin[i + 1]):
            if (
                not 0 <= known[place] < count or known[place] == i
                or place > begin[i] and known[place] <= known[place - 1]
            ):
                raise ValueError(f"partners of site {i} are not others, each once, in site order")
    return 0


cdef int check_down(
    const int64_t[::1] begin, const seconds_t[::1] down, Py_ssize_t count
) except -1:
    # When which site leaves and comes back.
    cdef Py_ssize_t i, place
    if begin.shape[0] != count + 1 or begin[0] != 0 or begin[count] != down.shape[0]:
        raise ValueError("the moments at which sites leave are of other sites")
    for i in range(count):
        if begin[i] > begin[i + 1]:
            raise ValueError("the moments at which sites leave are of other sites")
        for place in range(begin[i] + 1, begin[i + 1]):
            if not down[place - 1] < down[place]:
                raise ValueError(f"site {i} leaves and comes back out of order")
    return 0


cdef class FederationKernel:
    cdef Federation federation
    cdef list keep_alive
    cdef list written                # those of the policies that may fail
    cdef list failures
    cdef const seconds_t[::1] submit_time
    cdef const processors_t[::1] processors
    cdef const seconds_t[::1] requested_time
    cdef const seconds_t[::1] run_time
    cdef const int8_t[::1] groups
    cdef const int32_t[::1] users
    cdef const site_index_t[::1] submitted_to
    cdef const seconds_t[::1] checkpoint
    cdef seconds_t[::1] start_time
    cdef seconds_t[::1] end_time
    cdef site_index_t[::1] executed_on
    cdef const int32_t[::1] shape
    cdef const int64_t[:, ::1] asked
    cdef const int64_t[:, ::1] nodes
    cdef const uint8_t[:, ::1] holds
    cdef const uint8_t[:, ::1] tells
    cdef list tariffs                # columns that are pointed into
    cdef const int64_t[::1] known_from
    cdef const site_index_t[::1] known
    cdef const int64_t[::1] down_from
    cdef const seconds_t[::1] down
    cdef Py_ssize_t row

    def __cinit__(
        self, processors, schedulers, transfer, orders, count_open, reoffer=None, rogues=None,
        partners_asked=None, shadows=None, restarts=None, known=None, down=None,
        sparse_from=SPARSE_FROM, own_order=False, wide_area=None,
    ):
        cdef Py_ssize_t count = len(processors)
        cdef Py_ssize_t i, partners
        cdef Scheduler scheduler
        cdef SiteRun* site
        cdef bint sparse, strict
        if not 1 <= count < 2**31:
            raise ValueError(f"{count} sites; between 1 and {2**31 - 1} are possible")
        self.keep_alive = [list(schedulers), list(transfer), list(orders)]
        self.keep_alive.append([] if shadows is None else list(shadows))
        self.keep_alive[1] += [list(takes) for takes, *_ in (rogues or {}).values()]
        self.written = []
        self.failures = []
        self.federation.failures = <void*> self.failures
        due_open(&self.federation.due, count)
        self.federation.sites = <SiteRun*> calloc(count, sizeof(SiteRun))
        self.federation.processors = <processors_t*> calloc(count, sizeof(processors_t))
        if self.federation.sites == NULL or self.federation.processors == NULL:
            raise MemoryError(f"no memory for {count} sites")
        self.federation.count = count
        strict = shadows is not None and any(shadow is not None for shadow in shadows)
        if known is not None:
            self.known_from, self.known = known
            check_known(self.known_from, self.known, count)
        if down is not None:
            self.down_from, self.down = down
            check_down(self.down_from, self.down, count)
        for i in range(count):
            site = &self.federation.sites[i]
            site.count_open = count_open[i]
            # What looks at every partner in a decision anyway has tables of all of them.
            sparse = (
                not strict
                and (
                    count >= sparse_from or known is not None or own_order
                    or wide_area is not None
                )
                and orders[i] is None and not site.count_open
                and isinstance(transfer[i], CompiledTransfer)
                and (rogues is None or i not in rogues)
            )
            if (known is not None or own_order or wide_area is not None) and not sparse:
                words = "has messages that take time"
                if known is not None:
                    words = "knows some partners alone"
                elif own_order:
                    words = "has an order of its own"
                raise ValueError(
                    f"site {i} {words}, which takes the order by AWRT of completed jobs and one "
                    "policy, without strict-exchange"
                )
            site_alloc(site, count, sparse)
            scheduler = <Scheduler?> schedulers[i]    # never None
            scheduler.take()
            core_open(&site.core, processors[i], scheduler.ops, scheduler.notes)
            site.core.ended.kept = True
            site.restart = 0.0 if restarts is None else restarts[i]
            self.federation.processors[i] = processors[i]
            partners = site_policies(&self.federation, i, transfer[i], self.written)
            if known is not None:
                partners = self.known_from[i + 1] - self.known_from[i]
                site.met.place_count = partners
                site.met.known = &self.known[0] + self.known_from[i]
            if own_order:
                start_at_itself(site.met, <site_index_t> i)
            if down is not None and self.down.shape[0] > 0:
                site.down_count = self.down_from[i + 1] - self.down_from[i]
                site.down = &self.down[0] + self.down_from[i]
            if site.strict != NULL:
                scheduler = <Scheduler?> shadows[i]
                scheduler.take()
                site_account(&self.federation, site, scheduler.ops, scheduler.notes)
            if reoffer is not None and reoffer[i] is not None:
                site_rounds(&self.federation, site, reoffer[i])
            if rogues is not None and i in rogues:
                byzantine_make(&self.federation, site, rogues[i])
            site_order(site, i, count, self.keep_alive[2][i])
            if partners_asked is not None and partners_asked[i] is not None:
                site_bound(site, count, partners_asked[i], partners)
        widths_open(&self.federation.widths, self.federation.processors, count)
        if wide_area is not None:
            self.use_wide_area(wide_area, partners_asked, reoffer)

    cdef int use_wide_area(self, wide_area, partners_asked, reoffer) except -1:
        # Messages take time from now on.
        cdef WideArea* wide = &self.federation.wide
        cdef Scheduler scheduler
        if partners_asked is None or None in partners_asked:
            raise ValueError("where messages take time each site needs a number of partners asked")
        if self.federation.rounds:
            raise ValueError("where messages take time no site offers waiting jobs again")
        for scheduler in self.keep_alive[0]:
            if scheduler.ops.per_event:
                raise ValueError("where messages take time no discipline makes passes per event")
        seed, wide.median, wide.spread, wide.lost, wide.timeout = wide_area
        wide.seed = seed
        wide.most = min(max(partners_asked), self.federation.count)    # nobody is asked twice
        wide.spare = -1
        wide.used = True
        return 0

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.federation.sites != NULL:
            for i in range(self.federation.count):
                site_free(&self.federation.sites[i])
            free(self.federation.sites)
        free(self.federation.processors)
        free(self.federation.widths.most)
        due_close(&self.federation.due)
        wide_area_close(&self.federation.wide)
        free(self.federation.delegated.since)
        free(self.federation.delegated.mark)
        free(self.federation.pause_row)
        strict_free(&self.federation)

    def bind(
        self,
        const seconds_t[::1] submit_time,
        const processors_t[::1] processors,
        const seconds_t[::1] requested_time,
        const seconds_t[::1] run_time,
        const site_index_t[::1] submitted_to,
        seconds_t[::1] start_time,
        seconds_t[::1] end_time,
        site_index_t[::1] executed_on,
        const int8_t[::1] groups=None,
        const int32_t[::1] users=None,
        const seconds_t[::1] checkpoint=None,
    ):
        cdef JobColumns* jobs = &self.federation.jobs
        cdef Py_ssize_t count = submit_time.shape[0]
        cdef Py_ssize_t i
        if not (
            processors.shape[0] == requested_time.shape[0] == run_time.shape[0]
            == submitted_to.shape[0] == start_time.shape[0] == end_time.shape[0]
            == executed_on.shape[0] == count
        ):
            raise ValueError(f"every column needs {count} rows, as submit_time has")
        for i in range(count):
            if not 0 <= submitted_to[i] < self.federation.count:
                raise ValueError(f"job {i} is submitted to site {submitted_to[i]}")
        if groups is not None and groups.shape[0] != count:
            raise ValueError(f"groups has {groups.shape[0]} rows for {count} jobs")
        if users is not None and users.shape[0] != count:
            raise ValueError(f"users has {users.shape[0]} rows for {count} jobs")
        if checkpoint is not None and checkpoint.shape[0] != count:
            raise ValueError(f"checkpoint has {checkpoint.shape[0]} rows for {count} jobs")
        for scheduler in self.keep_alive[0]:
            (<Scheduler> scheduler).check(groups is not None)
        self.groups = groups
        self.users = users
        self.checkpoint = checkpoint
        self.submit_time = submit_time
        self.processors = processors
        self.requested_time = requested_time
        self.run_time = run_time
        self.submitted_to = submitted_to
        self.start_time = start_time
        self.end_time = end_time
        self.executed_on = executed_on
        memset(jobs, 0, sizeof(JobColumns))
        if count > 0:
            jobs.submit_time = &submit_time[0]
            jobs.processors = &processors[0]
            jobs.requested_time = &requested_time[0]
            jobs.run_time = &run_time[0]
            jobs.start_time = &start_time[0]
            jobs.end_time = &end_time[0]
            if groups is not None:
                jobs.group = &groups[0]
            if users is not None:
                jobs.user = &users[0]
            self.federation.submitted_to = &submitted_to[0]
            self.federation.executed_on = &executed_on[0]
            self.federation.whole_request = &requested_time[0]
            self.federation.whole_run = &run_time[0]
            if checkpoint is not None:
                self.federation.checkpoint = &checkpoint[0]
        if self.federation.strict:
            strict_bind(&self.federation, count)
        for i in range(self.federation.count):
            core_bind(&self.federation.sites[i].core, jobs[0])
        if self.federation.constrained or self.federation.lied_to:
            delegated_room(&self.federation.delegated, count)
        if self.federation.bounded:
            free(self.federation.pause_row)
            self.federation.pause_row = NULL
            self.federation.pause_row = <int32_t*> safe_calloc(
                count, sizeof(int32_t), b"jobs that are offered again"
            )

    def place_on_nodes(
        self,
        const int32_t[::1] shape not None,
        const int64_t[:, ::1] asked not None,
        const int64_t[:, ::1] nodes not None,
        const uint8_t[:, ::1] holds not None,
        const uint8_t[:, ::1] tells not None,
    ):
        cdef Py_ssize_t shapes = asked.shape[1]
        cdef Py_ssize_t i
        if (
            shape.shape[0] != self.submit_time.shape[0] or asked.shape[0] != 2
            or nodes.shape[0] != self.federation.count or nodes.shape[1] != 2
            or holds.shape[0] != self.federation.count or holds.shape[1] != shapes
            or tells.shape[0] != self.federation.count or tells.shape[1] != shapes
        ):
            raise ValueError("tables of demands are of other jobs or sites")
        if shape.shape[0] == 0:
            return
        self.shape = shape
        self.asked = asked
        self.nodes = nodes
        self.holds = holds
        self.tells = tells
        self.federation.shape = &shape[0]
        for i in range(self.federation.count):
            self.federation.sites[i].shape = &shape[0]
            self.federation.sites[i].memory = &asked[0, 0]
            self.federation.sites[i].gpus = &asked[1, 0]
            self.federation.sites[i].totals.memory = nodes[i, 0]
            self.federation.sites[i].totals.gpus = nodes[i, 1]
            self.federation.sites[i].holds = &holds[i, 0]
            self.federation.sites[i].tells = &tells[i, 0]

    def set_tariffs(self, tariffs, preferences):
        cdef const double[::1] offset, value, before
        cdef SiteRun* site
        cdef Py_ssize_t i
        self.tariffs = []
        for i in range(self.federation.count):
            site = &self.federation.sites[i]
            if tariffs[i] is not None:
                offset, value, before, first, period, scale = tariffs[i]
                if not 1 <= offset.shape[0] == value.shape[0] == before.shape[0] - 1:
                    raise ValueError(f"the tariff of site {i} is no step function")
                self.tariffs.append((offset, value, before))
                site.tariff.offset = &offset[0]
                site.tariff.value = &value[0]
                site.tariff.before = &before[0]
                site.tariff.count = offset.shape[0]
                site.tariff.first, site.tariff.period, site.tariff.scale = first, period, scale
        for i in range(self.federation.count):
            if preferences[i] is None:
                continue
            site = &self.federation.sites[i]
            if site.tariff.count == 0 or site.by_awrt or site.chooser != NULL:
                raise ValueError(f"site {i} has no tariff or no fixed order: no order by costs")
            if site.cheapest == NULL:
                site.cheapest = tariffs_open(self.federation.count)
            if site.cheapest == NULL:
                raise MemoryError(f"no memory for {self.federation.count} sites")
            delay_max, saving, look_ahead, site.cheapest.only = preferences[i]
            site.cheapest.deferral.delay_max = delay_max
            site.cheapest.deferral.saving = saving
            site.cheapest.deferral.look_ahead = look_ahead

    def run(self, Py_ssize_t rows):
        cdef Py_ssize_t count = self.submit_time.shape[0]
        cdef site_index_t index
        if not self.row <= rows <= count:
            raise ValueError(f"rows is {rows}; between {self.row} and {count} is possible")
        with nogil:
            replay(&self.federation, self.row, rows)
            if rows == count:
                if count > 0:
                    let_go(&self.federation, self.federation.jobs.submit_time[count - 1])
                if self.federation.strict and count > 0:
                    hold_strict_rounds(&self.federation, INFINITY)
                    advance_all(&self.federation, INFINITY)
                elif self.federation.rounds:
                    hold_rounds(&self.federation, INFINITY)
                elif self.federation.wide.used:
                    carry_messages(&self.federation, INFINITY)
                for index in range(<site_index_t> self.federation.count):
                    advance_site(&self.federation, index, INFINITY, True)
        self.row = rows
        for policy in self.written:
            (<CompiledTransfer> policy).check()
        if self.failures:
            raise self.failures[0]
        if rows == count:
            for index in range(<site_index_t> self.federation.count):
                waiting = self.federation.sites[index].core.view.queue.count
                if waiting:
                    raise ValueError(
                        f"the discipline of site {index} has left {waiting} jobs waiting on an "
                        "idle machine"
                    )
        return rows

    @property
    def offers(self):
        cdef Py_ssize_t i
        return [self.federation.sites[i].offers for i in range(self.federation.count)]

    @property
    def preempted(self):
        cdef Py_ssize_t i
        return [self.federation.sites[i].preempted for i in range(self.federation.count)]

    @property
    def lost(self):
        cdef Py_ssize_t i
        return [self.federation.sites[i].lost for i in range(self.federation.count)]

    def awrt(self):
        cdef Federation* federation = &self.federation
        cdef Py_ssize_t count = self.submit_time.shape[0]
        cdef Py_ssize_t i
        cdef double* sums = <double*> calloc(2 * federation.count, sizeof(double))
        if sums == NULL:
            raise MemoryError(f"no memory for the sums of {federation.count} sites")
        try:
            with nogil:
                sum_responses(federation, count, sums)
            return [
                sums[2 * i + 1] / sums[2 * i] if sums[2 * i] > 0.0 else NAN
                for i in range(federation.count)
            ]
        finally:
            free(sums)
