# What a replay keeps of its sites and of all of them together.
from libc.math cimport INFINITY, NAN, exp
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from grms.federation._due cimport DueTimes, due_set
from grms.federation._ledger cimport (
    MARK_ENDED,
    Delegated,
    PartnerBooks,
    PartnerNotes,
    ledger_free,
)
from grms.federation._own_account cimport (
    AccountRules,
    OwnAccount,
    account_bind,
    account_close,
    account_open,
)
from grms.federation._byzantine cimport ByzantineNotes, byzantine_close, byzantine_open
from grms.federation._met_partners cimport (
    MetPartners,
    dealt_row,
    met_close,
    met_open,
    promises_of,
)
from grms.federation._rebalancing cimport RoundNotes, rounds_close, rounds_open
from grms.federation._tariffs cimport TariffNotes, tariffs_close, tariffs_open
from grms.federation._site_table cimport table_row
from grms.federation._wide_area cimport WideArea
from grms.federation._widths cimport SiteWidths
from grms.policy._constraints cimport GUESTS_RUN, NO_ACCOUNT, ConstraintNumbers, favored_fast
from grms.policy._decisions cimport (
    WRITTEN,
    CompiledTransfer,
    NodeTotals,
    Standing,
    TransferPolicy,
    site_index_t,
)
from lrms_sim.kernel._machine cimport (
    JobColumns,
    MachineCore,
    core_close,
    core_enqueue,
    core_next_time,
    core_pass,
    core_set_clock,
)
from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._rate_steps cimport RateSteps
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport DisciplineOps

cdef struct SiteRun:
    MachineCore core
    # Where this is set, tables by partner have a row for each one met, or are there (`notes`); the
    # policy is the same for all of them.
    MetPartners* met
    const TransferPolicy* policy
    site_index_t* partners           # in the order in which they are asked
    Py_ssize_t partner_count
    bint by_awrt                     # else the order is fixed
    void* chooser                    # a function in Python that orders them; NULL for none
    bint count_open                  # open jobs count for the order, which is then of each moment
    double* consumption              # by partner: Σ p·m of own jobs completed there
    double* weighted_response        # by partner: Σ p·m·(C−r) of these
    double* open_consumption         # by partner: Σ of requested p·m of own jobs open there
    double* open_submitted           # by partner: Σ of the same times r
    int32_t* open_jobs               # by partner: how many are open there
    site_index_t* settled            # where open jobs count: partners without one, in order,
    Py_ssize_t settled_count
    site_index_t* opened             # and the others; see _order
    Py_ssize_t opened_count
    Py_ssize_t merged                # so many of `partners` are set in this decision,
    Py_ssize_t settled_merged        # so many of them of `settled`
    Standing* standing               # by partner, where the order is by AWRT
    const TransferPolicy** transfer  # by partner
    # by partner, for its offers: `transfer`, but at a Byzantine partner
    const TransferPolicy** takes
    ByzantineNotes* rogue                # NULL: an honest site
    PartnerNotes* ledger             # by partner; NULL without constraints, or where `met` is set
    PartnerNotes* delegated_to       # one of those that had a job of the site; the next is `after`
    double own_work                  # see Books; kept where anybody has constraints
    double own_requested
    seconds_t reoffer                # waiting jobs are offered again at its multiples; 0 for never
    RoundNotes* rounds               # NULL: every partner is asked about every job in every round
    seconds_t next_round
    Py_ssize_t partners_asked        # most about one job in one decision; 0: as many as there are
    site_index_t* asked_now          # places of those asked now; NULL where that does not count
    Py_ssize_t asked_count
    Py_ssize_t turn_place            # to which the last of these has moved
    int64_t offers                   # questions that have reached partners
    RateSteps tariff                 # what a busy processor costs; known to all
    TariffNotes* cheapest            # NULL: costs are not looked at
    const ConstraintNumbers* strict  # constraints with an account; NULL: the site keeps none
    OwnAccount* account              # of itself
    double* ended_by_width           # Σ p·m of own ended jobs, a Fenwick tree; where guests run on
    job_index_t* guests              # running here, in no order: protected ones, or all that run on
    Py_ssize_t guest_count
    Py_ssize_t guest_capacity
    bint returned                    # a job has come back or credit was lost, and no pass followed
    seconds_t next_look              # at the account
    seconds_t restart                # that own jobs take longer after each return
    int64_t preempted                # own users' jobs sent home, each time
    double lost                      # processor seconds lost with these
    NodeTotals totals                # of its nodes; of the job filled in for a question
    const int32_t* shape             # by job, of those with one demand; NULL: processors alone
    const int64_t* memory            # by shape, asked for in all, MiB
    const int64_t* gpus              # same
    const uint8_t* holds             # by shape, whether it could ever run; NULL: by width alone
    const uint8_t* tells             # by shape, whether it can tell partners what such a job needs
    const seconds_t* down            # when it leaves the exchange and comes back, by turns
    Py_ssize_t down_count            # 0: it stays
    Py_ssize_t down_next

cdef struct Federation:
    SiteRun* sites
    DueTimes due                     # when the machines next do something by themselves
    processors_t* processors         # by site: its size, all that is looked at of most partners
    SiteWidths widths                # the same as a tree, where some site has `met`
    Py_ssize_t count
    JobColumns jobs
    const int32_t* shape             # by job, of those with one demand; NULL: processors alone
    const site_index_t* submitted_to
    site_index_t* executed_on
    void* failures                   # a list: what choosers have raised
    bint constrained                      # some policy has constraints
    bint rounds                      # some site offers again
    seconds_t round_time             # when the next of these does
    bint bounded                     # and puts no more questions than it is told
    bint lied_to                     # some site misreports guests
    bint strict                      # some site keeps an account
    bint any_returned                # some site's `returned` is set
    const seconds_t* whole_request   # by job; `jobs` has what no checkpoint has kept of these
    const seconds_t* whole_run
    const seconds_t* checkpoint      # by job, how often its state is kept, 0 for never; NULL: none
    seconds_t* left_request
    seconds_t* left_run
    seconds_t* shadow_run            # of the accounts; see OwnAccount
    seconds_t* shadow_start
    seconds_t* shadow_end
    double* impact                   # by job, what a guest that runs on may cost its host
    seconds_t* true_left             # by job, as `left_run`, at a site that ends it before
    int8_t* handing                  # by job that runs away from home, how it was taken
    int8_t* empty_returns            # by job
    Delegated delegated              # where `constrained` or `lied_to`
    int32_t* pause_row               # by job, where a site's rounds are bounded; see rounds_add
    WideArea wide                    # where messages take time


cdef inline int site_alloc(SiteRun* site, Py_ssize_t count, bint sparse) except -1:
    # Memory for a site's records of `count` sites, or of those it will meet; `count_open` is set.
    cdef Py_ssize_t sums = 4 if site.count_open else 2
    if sparse:
        site.met = met_open(count)
        return 0
    site.partners = <site_index_t*> calloc(count, sizeof(site_index_t))
    site.consumption = <double*> calloc(sums * count, sizeof(double))
    if site.consumption != NULL:
        site.weighted_response = site.consumption + count
        if site.count_open:
            site.open_consumption = site.consumption + 2 * count
            site.open_submitted = site.consumption + 3 * count
            site.open_jobs = <int32_t*> calloc(count, sizeof(int32_t))
            site.settled = <site_index_t*> calloc(2 * count, sizeof(site_index_t))
            site.opened = site.settled + count
    site.transfer = <const TransferPolicy**> calloc(count, sizeof(TransferPolicy*))
    if (
        site.partners == NULL or site.consumption == NULL
        or site.transfer == NULL
        or (site.count_open and (site.open_jobs == NULL or site.settled == NULL))
    ):
        raise MemoryError(f"no memory for {count} sites")
    site.takes = site.transfer
    return 0


cdef inline bint is_down(SiteRun* site, seconds_t now) noexcept nogil:
    # Whether it has left the exchange; moments that are asked for never go back.
    while site.down_next < site.down_count and site.down[site.down_next] <= now:
        site.down_next += 1
    return site.down_next & 1


cdef inline const TransferPolicy* giving(const SiteRun* site, site_index_t other) noexcept nogil:
    # The policy for what a site offers to another one; NULL where they exchange nothing.
    return site.transfer[other] if site.met == NULL else site.policy


cdef inline const TransferPolicy* taking(const SiteRun* site, site_index_t other) noexcept nogil:
    # And for the other one's offers.
    return site.takes[other] if site.met == NULL else site.policy


cdef inline bint keeps_notes(const SiteRun* site) noexcept nogil:
    # Whether it keeps records of partners for constraints.
    return site.ledger != NULL if site.met == NULL else site.met.constrained


cdef inline const PartnerBooks* books_seen(const SiteRun* site, site_index_t other) noexcept nogil:
    # What there is in the books about a partner, of a site that keeps some; NULL for nothing.
    cdef int32_t row
    if site.met == NULL:
        return &site.ledger[other].books
    row = table_row(&site.met.dealt, other)
    return NULL if row < 0 else &site.met.books[row]


cdef inline PartnerBooks* books_of(SiteRun* site, site_index_t other) except NULL nogil:
    # The same, new where there is nothing; valid until the next is made.
    cdef int32_t row
    if site.met == NULL:
        return &site.ledger[other].books
    row = dealt_row(site.met, other)
    return &site.met.books[row]


cdef inline PartnerNotes* notes_seen(SiteRun* site, site_index_t other) noexcept nogil:
    # The record of a partner's promises; NULL where it would be empty.
    cdef int32_t row
    if site.met == NULL:
        return &site.ledger[other]
    row = table_row(&site.met.dealt, other)
    if row < 0 or site.met.dealings[row].promises == 0:
        return NULL
    return &site.met.promises[site.met.dealings[row].promises - 1]


cdef inline PartnerNotes* notes_of(SiteRun* site, site_index_t other) except NULL nogil:
    # The same, new where there is none; valid until the next is made.
    return &site.ledger[other] if site.met == NULL else promises_of(site.met, other)


cdef inline int site_bound(
    SiteRun* site, Py_ssize_t count, Py_ssize_t asked, Py_ssize_t known
) except -1:
    # Sets the most partners asked in a decision. The order is set.
    if asked >= known:
        return 0
    site.partners_asked = asked
    if site.by_awrt:
        site.turn_place = site.partner_count - 1    # -1 where none has been met
        site.asked_now = <site_index_t*> calloc(asked, sizeof(site_index_t))
        if site.asked_now == NULL:
            raise MemoryError(f"no memory for {count} sites")
    return 0


cdef inline void site_free(SiteRun* site) noexcept:
    core_close(&site.core)
    while site.delegated_to != NULL:
        # Most of a thousand partners have never had a job, so they are not scanned.
        ledger_free(site.delegated_to)
        site.delegated_to = site.delegated_to.after
    free(site.ledger)
    met_close(site.met)
    rounds_close(site.rounds)
    byzantine_close(site.rogue)
    tariffs_close(site.cheapest)
    free(site.partners)
    free(site.consumption)
    free(site.open_jobs)
    free(site.settled)
    free(site.standing)
    free(site.asked_now)
    free(site.transfer)
    if site.account != NULL:
        account_close(site.account)
        free(site.account)
    free(site.ended_by_width)
    free(site.guests)


cdef inline int book_given(
    Federation* federation, site_index_t index, job_index_t job, double consumption, double reported
) except -1 nogil:
    # What the home of a job records when it is told that it has ended at site `index`: it only
    # knows the reported work. `reported` is of its last start alone.
    cdef SiteRun* home = &federation.sites[federation.submitted_to[job]]
    cdef PartnerBooks* books
    cdef PartnerNotes* notes
    home.own_work += consumption
    home.own_requested += consumption * federation.whole_request[job]
    if federation.submitted_to[job] != index and keeps_notes(home):
        books = books_of(home, index)
        books.given += reported
        books.favor = favored_fast(books.favor, reported, 0.0)
        notes = notes_seen(home, index)
        if notes != NULL:
            notes.stale = True
        federation.delegated.mark[job] |= MARK_ENDED
    return 0


cdef inline int book_taken(
    Federation* federation, SiteRun* site, job_index_t job, double left
) except -1 nogil:
    # And what a site records when a partner's job has ended there; `left` as `reported`.
    cdef PartnerBooks* books
    if keeps_notes(site):
        books = books_of(site, federation.submitted_to[job])
        books.taken += left - federation.jobs.requested_time[job] * federation.jobs.processors[job]
        books.favor = favored_fast(books.favor, 0.0, left)
    return 0


cdef inline int byzantine_make(Federation* federation, SiteRun* site, rogue) except -1:
    # Makes a site a Byzantine partner: its policies for others' offers, and its treatment of
    # guests.
    cdef CompiledTransfer policy
    cdef Py_ssize_t i
    takes, lies, holds, returns, hides = rogue
    site.rogue = byzantine_open(federation.count, lies, holds, returns, hides)
    site.takes = site.rogue.takes
    for i in range(federation.count):
        if takes[i] is not None:
            policy = <CompiledTransfer?> takes[i]
            site.rogue.takes[i] = &policy.policy
    if lies:
        federation.lied_to = True
    return 0


cdef inline int let_go(Federation* federation, seconds_t now) except -1 nogil:
    # Deferred guests enter their machines' queues, each machine's with one pass.
    cdef site_index_t index
    cdef SiteRun* site
    cdef ByzantineNotes* rogue
    cdef Py_ssize_t i
    for index in range(<site_index_t> federation.count):
        site = &federation.sites[index]
        rogue = site.rogue
        if rogue == NULL or not rogue.holds:
            continue
        rogue.holds = False
        core_set_clock(&site.core, now)
        for i in range(rogue.count):
            core_enqueue(&site.core, rogue.held[i])
        if rogue.count:
            core_pass(&site.core)
            due_set(&federation.due, index, core_next_time(&site.core))
    return 0


cdef inline int site_order(SiteRun* site, Py_ssize_t index, Py_ssize_t count, order) except -1:
    # Sets the order in which a site asks its partners; the caller keeps a chooser alive.
    cdef Py_ssize_t j
    site.by_awrt = order is None
    if site.met != NULL:
        return 0
    if order is None:
        site.standing = <Standing*> calloc(count, sizeof(Standing))
        if site.standing == NULL:
            raise MemoryError(f"no memory for {count} sites")
        for j in range(count):
            site.standing[j].site = <site_index_t> j
            if j != index:
                site.partners[site.partner_count] = <site_index_t> j
                if site.count_open:
                    site.settled[site.partner_count] = <site_index_t> j
                site.partner_count += 1
        site.settled_count = site.partner_count
        return 0
    if callable(order):
        site.chooser = <void*> order
        order = []
    for j in order:
        if not 0 <= j < count or j == index or site.partner_count == count - 1:
            raise ValueError(f"order {order} of site {index} is no order of its partners")
        site.partners[site.partner_count] = <site_index_t> j
        site.partner_count += 1
    return 0


cdef inline int keep_policy(
    Federation* federation, Py_ssize_t index, CompiledTransfer policy, list written
) except -1:
    # Checks whether a site can have a policy, and allocates what it needs.
    cdef SiteRun* site = &federation.sites[index]
    if policy.policy.further and not policy.policy.constrained:
        raise ValueError(
            f"a rule base of site {index} looks at more than queue and width, and so "
            f"decides within constraints alone"
        )
    if policy.policy.kind == WRITTEN:
        written.append(policy)
    if policy.policy.constrained and policy.policy.rails.account != NO_ACCOUNT:
        site.strict = &policy.policy.rails
        federation.strict = True
    if policy.policy.constrained and site.met != NULL:
        federation.constrained = site.met.constrained = True
    elif policy.policy.constrained and site.ledger == NULL:
        federation.constrained = True
        site.ledger = <PartnerNotes*> calloc(federation.count, sizeof(PartnerNotes))
        if site.ledger == NULL:
            raise MemoryError(f"no memory for {federation.count} sites")
    return 0


cdef inline Py_ssize_t site_policies(
    Federation* federation, Py_ssize_t index, row, list written
) except -1:
    # Sets a site's policies, and returns its number of partners: one policy for all of them, or
    # one for each with None for no exchange. A thousand sites have a million pairs, too many for
    # Python.
    cdef SiteRun* site = &federation.sites[index]
    cdef CompiledTransfer policy
    cdef Py_ssize_t known = 0
    cdef Py_ssize_t i
    if isinstance(row, CompiledTransfer):
        policy = <CompiledTransfer> row
        keep_policy(federation, index, policy, written)
        if site.met != NULL:
            site.policy = &policy.policy
            return federation.count - 1
        for i in range(federation.count):
            if i != index:
                site.transfer[i] = &policy.policy
        return federation.count - 1
    for i in range(federation.count):
        if row[i] is not None and i != index:
            policy = <CompiledTransfer?> row[i]
            keep_policy(federation, index, policy, written)
            site.transfer[i] = &policy.policy
            known += 1
    return known


cdef inline int site_account(
    Federation* federation, SiteRun* site, DisciplineOps ops, void* notes
) except -1:
    # Opens the account of a site whose policies ask for one; `notes` are its shadow's.
    cdef AccountRules rules
    rules.period = site.strict.account_period
    rules.allowance = site.strict.allowance
    rules.cap = site.strict.cap
    rules.decay = exp(-site.strict.account_period / site.strict.memory)
    site.account = <OwnAccount*> calloc(1, sizeof(OwnAccount))
    if site.account == NULL:
        raise MemoryError("no memory for an account")
    account_open(site.account, site.core.view.processors, ops, notes, rules)
    if site.strict.account == GUESTS_RUN:
        site.ended_by_width = <double*> safe_calloc(
            site.core.view.processors + 1, sizeof(double), b"widths of own jobs"
        )
    return 0


cdef inline int strict_bind(Federation* federation, Py_ssize_t count) except -1:
    # Memory by job of a replay with accounts; `jobs` then has what is left of each job.
    cdef JobColumns* jobs = &federation.jobs
    cdef JobColumns shadow = jobs[0]
    cdef Py_ssize_t i
    cdef seconds_t* times
    strict_free(federation)
    times = <seconds_t*> safe_calloc(7 * count, sizeof(seconds_t), b"jobs of accounts")
    federation.left_request = times
    federation.left_run = times + count
    federation.shadow_run = times + 2 * count
    federation.shadow_start = times + 3 * count
    federation.shadow_end = times + 4 * count
    federation.impact = times + 5 * count
    federation.true_left = times + 6 * count
    federation.handing = <int8_t*> safe_calloc(2 * count, sizeof(int8_t), b"jobs handed over")
    federation.empty_returns = federation.handing + count
    if count > 0:
        memcpy(federation.left_request, jobs.requested_time, count * sizeof(seconds_t))
        memcpy(federation.left_run, jobs.run_time, count * sizeof(seconds_t))
    for i in range(count):
        federation.shadow_run[i] = INFINITY
        federation.shadow_start[i] = NAN
        jobs.start_time[i] = NAN
    shadow.start_time = federation.shadow_start
    shadow.end_time = federation.shadow_end
    for i in range(federation.count):
        if federation.sites[i].account != NULL:
            account_bind(
                federation.sites[i].account, shadow, federation.shadow_run, jobs.start_time,
                jobs.end_time,
            )
    jobs.requested_time = federation.left_request
    jobs.run_time = federation.left_run
    return 0


cdef inline void strict_free(Federation* federation) noexcept:
    free(federation.left_request)
    free(federation.handing)
    federation.left_request = NULL
    federation.handing = NULL


cdef inline int site_rounds(Federation* federation, SiteRun* site, rounds) except -1:
    # Lets the site offer again: the period, and None or the bounds of its rounds.
    site.reoffer, bounds = rounds
    if bounds is not None:
        site.rounds = rounds_open(federation.count, site.reoffer, bounds[0], bounds[1], bounds[2])
        federation.bounded = True
    site.next_round = federation.round_time = -INFINITY
    federation.rounds = True
    return 0


cdef inline void sum_responses(const Federation* federation, Py_ssize_t count, double* sums) \
        noexcept nogil:
    # By site, for its users: Σ p·m and Σ p·m·(C−r).
    cdef const JobColumns* jobs = &federation.jobs
    cdef Py_ssize_t row, i
    cdef double consumption
    for row in range(count):
        i = 2 * federation.submitted_to[row]
        consumption = federation.whole_run[row] * jobs.processors[row]
        sums[i] += consumption
        sums[i + 1] += consumption * (jobs.end_time[row] - jobs.submit_time[row])
