"""Transfer decisions and the order of partners (paper 003, sections 4 and 7.1), compiled.

Each has a fast form (`..._fast`, for kernels, without checks) and a plain one that checks its
arguments and calls it: the federation kernel and a site's daemon execute the same instructions.
"""

from libc.math cimport exp, fmax, log10
from libc.stdlib cimport calloc, free
from libc.string cimport memmove, memset

from grms.policy._constraints cimport Books, CompiledConstraints, takes_guest_fast
from lrms_sim.kernel._types cimport processors_sum_t, processors_t, seconds_t


cdef double membership_fast(double x, double gamma, double sigma) noexcept nogil:
    # Equation 4. For σ = 0 the Gaussian is its limit: 1 at γ, 0 elsewhere.
    cdef double distance = x - gamma
    if sigma == 0.0:
        return 1.0 if distance == 0.0 else 0.0
    distance /= sigma
    return exp(-(distance * distance))


cdef inline double further_fast(
    const TransferPolicy* policy, const TskRule* rule, const FurtherValues* values
) noexcept nogil:
    # Contribution of further features to the product of equation 7.
    cdef double degree = 1.0
    if policy.further & REQUESTED_TIME:
        degree *= membership_fast(values.time, rule.time_gamma, rule.time_sigma)
    if policy.further & MEMORY_SHARE:
        degree *= membership_fast(values.memory, rule.memory_gamma, rule.memory_sigma)
    if policy.further & GPU_SHARE:
        degree *= membership_fast(values.gpu, rule.gpu_gamma, rule.gpu_sigma)
    if policy.further & DOMINANT_SHARE:
        degree *= membership_fast(values.dominant, rule.dominant_gamma, rule.dominant_sigma)
    if policy.further & STARTS_NOW:
        degree *= membership_fast(values.now, rule.now_gamma, rule.now_sigma)
    return degree


cdef inline double lg_seconds(seconds_t requested_time) noexcept nogil:
    # Requests range from a minute to weeks, hence the logarithm; at least a second.
    return log10(requested_time) if requested_time > 1.0 else 0.0


cdef inline void further_values(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load, FurtherValues* values
) noexcept nogil:
    memset(values, 0, sizeof(FurtherValues))
    if policy.further & REQUESTED_TIME:
        values.time = lg_seconds(job.requested_time)
    if policy.further & STARTS_NOW:
        values.now = 1.0 if load.starts_now else 0.0
    if policy.further & (MEMORY_SHARE | GPU_SHARE | DOMINANT_SHARE):
        if load.nodes != NULL and load.nodes.memory > 0:
            values.memory = 100.0 * load.nodes.job_memory / load.nodes.memory
        if load.nodes != NULL and load.nodes.gpus > 0:
            values.gpu = 100.0 * load.nodes.job_gpus / load.nodes.gpus
        values.dominant = fmax(
            100.0 * job.processors / load.processors, fmax(values.memory, values.gpu)
        )


cdef double tsk_output_fast(
    const TransferPolicy* policy, double nwp, double njp, const FurtherValues* values
) noexcept nogil:
    # Numerator of equation 2 with the degrees of equation 7. Equation 8 only needs its sign, and
    # the denominator is never negative, so the division is omitted.
    cdef double total = 0.0
    cdef double degree
    cdef const TskRule* rule
    cdef Py_ssize_t i
    for i in range(policy.count):
        rule = &policy.rules[i]
        degree = (
            membership_fast(nwp, rule.nwp_gamma, rule.nwp_sigma)
            * membership_fast(njp, rule.njp_gamma, rule.njp_sigma)
        )
        if policy.further:
            degree *= further_fast(policy, rule, values)
        total += degree * rule.output
    return total


cdef double cached_output_fast(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load
) noexcept nogil:
    # tsk_output_fast to the last bit, at the site of the cache: the same products in the same
    # order, each membership computed once.
    cdef MembershipCache* cache = policy.cache
    cdef Py_ssize_t count = policy.count
    cdef processors_t job_processors = job.processors
    cdef processors_sum_t waiting = load.processors_waiting
    cdef double* nwp = &cache.nwp[waiting * count]
    cdef double* njp = &cache.njp[job_processors * count]
    cdef double total = 0.0
    cdef double x
    cdef FurtherValues values
    cdef Py_ssize_t i
    if cache.nwp_stamp[waiting] != cache.stamp:
        cache.nwp_stamp[waiting] = cache.stamp
        x = <double> waiting / cache.processors
        for i in range(count):
            nwp[i] = membership_fast(x, policy.rules[i].nwp_gamma, policy.rules[i].nwp_sigma)
    if cache.njp_stamp[job_processors] != cache.stamp:
        cache.njp_stamp[job_processors] = cache.stamp
        x = 100.0 * job_processors / cache.processors
        for i in range(count):
            njp[i] = membership_fast(x, policy.rules[i].njp_gamma, policy.rules[i].njp_sigma)
    if policy.further:
        further_values(policy, job, load, &values)
        for i in range(count):
            total += (
                nwp[i] * njp[i] * further_fast(policy, &policy.rules[i], &values)
            ) * policy.rules[i].output
        return total
    for i in range(count):
        total += (nwp[i] * njp[i]) * policy.rules[i].output
    return total


cdef class TransferQuestion:
    cdef readonly int job_processors
    cdef readonly int processors
    cdef readonly int processors_free
    cdef readonly long long processors_waiting
    cdef readonly bint own
    cdef readonly double requested_time
    cdef readonly bint starts_now
    cdef readonly bint fits
    cdef readonly long long job_memory
    cdef readonly long long job_gpus
    cdef readonly long long memory
    cdef readonly long long gpus

    @property
    def memory_share(self):
        """Memory that the job asks for over the site's; 0 where the site counts none."""
        return <double> self.job_memory / self.memory if self.memory > 0 else 0.0

    @property
    def gpu_share(self):
        """GPUs that the job asks for over the site's; 0 where there are none."""
        return <double> self.job_gpus / self.gpus if self.gpus > 0 else 0.0

    @property
    def dominant_share(self):
        """The largest of its shares of the site's processors, memory and GPUs."""
        processor_share = <double> self.job_processors / self.processors
        return max(processor_share, self.memory_share, self.gpu_share)

    def __repr__(self):
        return (
            f"TransferQuestion(job_processors={self.job_processors}, "
            f"processors={self.processors}, processors_free={self.processors_free}, "
            f"processors_waiting={self.processors_waiting}, own={self.own}, "
            f"requested_time={self.requested_time}, starts_now={self.starts_now}, "
            f"fits={self.fits}, job_memory={self.job_memory}, job_gpus={self.job_gpus}, "
            f"memory={self.memory}, gpus={self.gpus})"
        )


cdef bint accept_written(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load, bint own
) noexcept with gil:
    # Kernels cannot raise here: they check for the failure later. Until then own jobs stay.
    cdef CompiledTransfer compiled = <CompiledTransfer> policy.written
    cdef TransferQuestion question
    if compiled.failure is not None:
        return own
    try:
        question = TransferQuestion.__new__(TransferQuestion)
        question.job_processors = job.processors
        question.processors = load.processors
        question.processors_free = load.processors_free
        question.processors_waiting = load.processors_waiting
        question.own = own
        question.requested_time = job.requested_time
        question.starts_now = load.starts_now
        question.fits = load.fits
        if load.nodes != NULL:
            question.job_memory = load.nodes.job_memory
            question.job_gpus = load.nodes.job_gpus
            question.memory = load.nodes.memory
            question.gpus = load.nodes.gpus
        return bool(compiled.answer(question))
    except BaseException as error:
        compiled.failure = error
        return own


cdef bint accept_fast(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load, const Books* books, bint own
) noexcept nogil:
    # Does the site want to run this job itself, now? Zero means no, in every policy.
    if policy.constrained:
        if own:
            if policy.rails.start_now and load.starts_now:
                return True
        elif policy.rails.start_now and not load.starts_now or not takes_guest_fast(
            &policy.rails, job.processors, job.requested_time, load.processors, books
        ):
            return False
    return inner_fast(policy, job, load, own)


cdef bint rules_fast(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load
) noexcept nogil:
    # Equation 8: whether the output of a rule base is above 0.
    cdef FurtherValues values
    if (
        policy.cache != NULL
        and policy.stamp == policy.cache.stamp
        and load.processors == policy.cache.processors
        and load.processors_waiting <= policy.cache.waiting_max
    ):
        return cached_output_fast(policy, job, load) > 0.0
    if policy.further:
        further_values(policy, job, load, &values)
    return tsk_output_fast(
        policy,
        <double> load.processors_waiting / load.processors,      # equation 9
        100.0 * job.processors / load.processors,                # equation 10, in percent
        &values,
    ) > 0.0


cdef bint inner_fast(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load, bint own
) noexcept nogil:
    # What the policy would do, whatever its constraints say.
    if policy.kind == ACCEPT_WHEN_FIT:
        return load.fits
    if policy.kind == RULE_BASE:
        return rules_fast(policy, job, load)
    if policy.kind == WRITTEN:
        return accept_written(policy, job, load, own)
    return policy.kind == (ALWAYS_KEEP if own else ALWAYS_AGREE)


cdef class MembershipTable:

    def __cinit__(self, processors_t processors, Py_ssize_t rules, Py_ssize_t waiting_max=16384):
        cdef MembershipCache* cache = &self.cache
        if processors < 1 or rules < 1 or waiting_max < 0:
            raise ValueError(
                f"a table for {processors} processors, {rules} rules and queues of up to "
                f"{waiting_max} processors cannot be"
            )
        cache.processors = processors
        cache.rules = rules
        cache.waiting_max = waiting_max
        cache.nwp_stamp = <uint32_t*> calloc(waiting_max + 1, sizeof(uint32_t))
        cache.njp_stamp = <uint32_t*> calloc(<size_t> processors + 1, sizeof(uint32_t))
        cache.nwp = <double*> calloc((waiting_max + 1) * rules, sizeof(double))
        cache.njp = <double*> calloc((<size_t> processors + 1) * rules, sizeof(double))
        if (
            cache.nwp_stamp == NULL or cache.njp_stamp == NULL
            or cache.nwp == NULL or cache.njp == NULL
        ):
            raise MemoryError(f"no memory for a membership table of {rules} rules")

    def __dealloc__(self):
        free(self.cache.nwp_stamp)
        free(self.cache.njp_stamp)
        free(self.cache.nwp)
        free(self.cache.njp)

    cdef int begin(self, Py_ssize_t rules) except -1:
        # Drops the former rule base.
        cdef MembershipCache* cache = &self.cache
        if rules != cache.rules:
            raise ValueError(f"{rules} rules for a table of {cache.rules}")
        cache.stamp += 1
        if cache.stamp == 0:
            # After 2**32 rule bases old stamps could be mistaken for new ones.
            memset(cache.nwp_stamp, 0, (cache.waiting_max + 1) * sizeof(uint32_t))
            memset(cache.njp_stamp, 0, (<size_t> cache.processors + 1) * sizeof(uint32_t))
            cache.stamp = 1
        return 0


cdef class CompiledTransfer:
    def __cinit__(self):
        self.owned_rules = NULL
        self.policy.kind = NO_POLICY
        self.policy.rules = NULL
        self.policy.count = 0
        self.policy.further = 0
        self.policy.cache = NULL
        self.policy.stamp = 0
        self.policy.written = NULL
        self.policy.constrained = False

    def __dealloc__(self):
        free(self.owned_rules)

    @property
    def decides(self):
        return self.policy.kind != NO_POLICY

    @staticmethod
    def always_keep():
        cdef CompiledTransfer compiled = CompiledTransfer()
        compiled.policy.kind = ALWAYS_KEEP
        return compiled

    @staticmethod
    def always_agree():
        cdef CompiledTransfer compiled = CompiledTransfer()
        compiled.policy.kind = ALWAYS_AGREE
        return compiled

    def constrained(self, CompiledConstraints rails not None):
        cdef CompiledTransfer compiled = CompiledTransfer()
        if self.policy.constrained:
            raise ValueError("this policy has constraints already")
        if self.policy.further & STARTS_NOW and not rails.rails.start_now:
            raise ValueError(
                "rules that look at whether a job would start need constraints that ask it "
                "(start_now)"
            )
        compiled.policy = self.policy
        compiled.policy.constrained = True
        compiled.policy.rails = rails.rails
        compiled.inner = self
        compiled.rails = rails
        return compiled

    @staticmethod
    def accept_when_fit():
        cdef CompiledTransfer compiled = CompiledTransfer()
        compiled.policy.kind = ACCEPT_WHEN_FIT
        return compiled

    @property
    def needs_constraints(self):
        return self.policy.further != 0 and not self.policy.constrained

    @staticmethod
    def rule_base(
        rules,
        MembershipTable table=None,
        *,
        bint requested_time=False,
        bint memory_share=False,
        bint gpu_share=False,
        bint dominant_share=False,
        bint starts_now=False,
    ):
        cdef CompiledTransfer compiled = CompiledTransfer()
        cdef TskRule* rule
        cdef Py_ssize_t i
        features = requested_time + memory_share + gpu_share + dominant_share + starts_now
        if len(rules) == 0:
            raise ValueError("a rule base needs at least one rule")
        compiled.owned_rules = <TskRule*> calloc(len(rules), sizeof(TskRule))
        if compiled.owned_rules == NULL:
            raise MemoryError(f"no memory for {len(rules)} rules")
        for i in range(len(rules)):
            rule = &compiled.owned_rules[i]
            rule.nwp_gamma, rule.nwp_sigma, rule.njp_gamma, rule.njp_sigma, *further = rules[i]
            rule.output = further.pop()
            if len(further) != 2 * features:
                raise ValueError(
                    f"rule {i} has {len(further)} numbers for its further features; "
                    f"{2 * features} are needed"
                )
            if requested_time:
                rule.time_gamma, rule.time_sigma, *further = further
            if memory_share:
                rule.memory_gamma, rule.memory_sigma, *further = further
            if gpu_share:
                rule.gpu_gamma, rule.gpu_sigma, *further = further
            if dominant_share:
                rule.dominant_gamma, rule.dominant_sigma, *further = further
            if starts_now:
                rule.now_gamma, rule.now_sigma = further
        compiled.policy.further = (
            REQUESTED_TIME * requested_time
            | MEMORY_SHARE * memory_share
            | GPU_SHARE * gpu_share
            | DOMINANT_SHARE * dominant_share
            | STARTS_NOW * starts_now
        )
        compiled.policy.kind = RULE_BASE
        compiled.policy.rules = compiled.owned_rules
        compiled.policy.count = len(rules)
        if table is not None:
            table.begin(len(rules))
            compiled.table = table
            compiled.policy.cache = &table.cache
            compiled.policy.stamp = table.cache.stamp
        return compiled

    @staticmethod
    def written(answer):
        cdef CompiledTransfer compiled = CompiledTransfer()
        compiled.policy.kind = WRITTEN
        compiled.policy.written = <void*> compiled
        compiled.answer = answer
        return compiled

    def check(self):
        if self.inner is not None:
            self.inner.check()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def accept(
        self,
        processors_t job_processors,
        *,
        processors_t processors,
        processors_t processors_free,
        long long processors_waiting,
        bint own,
        double requested_time=0.0,
        bint starts_now=False,
        books=(0.0, 0.0, 0.0, 0.0),
        fits=None,
        long long job_memory=0,
        long long job_gpus=0,
        long long memory=0,
        long long gpus=0,
        bint within=True,
    ):
        cdef SiteLoad load
        cdef NodeTotals nodes
        cdef KnownJob job
        cdef Books own_books
        if self.needs_constraints:
            raise ValueError(
                "a rule base that looks at more than queue and width decides within constraints "
                "alone"
            )
        if not 1 <= job_processors <= processors:
            raise ValueError(
                f"job_processors is {job_processors}; it must be between 1 and the site's "
                f"{processors}"
            )
        if not 0 <= processors_free <= processors:
            raise ValueError(
                f"processors_free is {processors_free}; it must be between 0 and {processors}"
            )
        if processors_waiting < 0:
            raise ValueError(f"processors_waiting is {processors_waiting}; it must be at least 0")
        load.processors = processors
        load.processors_free = processors_free
        load.processors_waiting = processors_waiting
        load.starts_now = starts_now
        load.fits = job_processors <= processors_free if fits is None else fits
        load.nodes = &nodes
        nodes.memory = memory
        nodes.gpus = gpus
        nodes.job_memory = job_memory
        nodes.job_gpus = job_gpus
        job.processors = job_processors
        job.requested_time = requested_time
        job.number = -1
        own_books.own_work, own_books.own_requested, own_books.taken, own_books.given = books
        if within:
            accepted = bool(accept_fast(&self.policy, job, &load, &own_books, own))
        else:
            accepted = bool(inner_fast(&self.policy, job, &load, own))
        self.check()
        return accepted

    def output(
        self,
        double nwp,
        double njp,
        *,
        double requested_time=0.0,
        double memory_share=0.0,
        double gpu_share=0.0,
        double dominant_share=-1.0,
        bint starts_now=False,
    ):
        cdef FurtherValues values
        if self.policy.kind != RULE_BASE:
            raise ValueError("only a rule base has an output")
        values.time = lg_seconds(requested_time)
        values.now = 1.0 if starts_now else 0.0
        values.memory = memory_share
        values.gpu = gpu_share
        values.dominant = dominant_share
        if dominant_share < 0.0:
            values.dominant = max(njp, memory_share, gpu_share)
        return tsk_output_fast(&self.policy, nwp, njp, &values)


# --- in which order partners are asked: by AWRT ---------------------------------------------------

cdef void order_by_awrt_fast(
    site_index_t* partners, Py_ssize_t count, const Standing* standing
) noexcept nogil:
    # Insertion sort of `partners`, with `standing` by site; fast if they are nearly in order.
    cdef Py_ssize_t i, place
    cdef site_index_t site, other
    for i in range(1, count):
        site = partners[i]
        place = i
        while place > 0:
            other = partners[place - 1]
            if asked_before(other, site, standing):
                break
            partners[place] = other
            place -= 1
        partners[place] = site


cdef Py_ssize_t place_by_awrt_fast(
    const site_index_t* partners,
    Py_ssize_t count,
    const Standing* standing,
    site_index_t site,
) noexcept nogil:
    # The rank of a site among sorted partners.
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = count
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if asked_before(partners[middle], site, standing):
            low = middle + 1
        else:
            high = middle
    return low


cdef Py_ssize_t move_by_awrt_fast(
    site_index_t* partners,
    Py_ssize_t count,
    const Standing* standing,
    Py_ssize_t place,
    Py_ssize_t near,
) noexcept nogil:
    # The result of order_by_awrt_fast after only the figures of the one at `place` have changed: a
    # replay reorders after every delegated job that ends. Returns its new place; `near` is a
    # guess, or -1, which saves a search through uncached memory if there are many sites.
    cdef site_index_t site = partners[place]
    cdef Py_ssize_t low = place
    if place < near < count and asked_before(partners[near], site, standing) and (
        near + 1 == count or not asked_before(partners[near + 1], site, standing)
    ):
        low = near
    elif place > 0 and not asked_before(partners[place - 1], site, standing):
        low = place_by_awrt_fast(partners, place - 1, standing, site)
    else:
        low = place + place_by_awrt_fast(
            &partners[place + 1], count - 1 - place, standing, site
        )
    if low < place:
        memmove(&partners[low + 1], &partners[low], (place - low) * sizeof(site_index_t))
    else:
        memmove(&partners[place], &partners[place + 1], (low - place) * sizeof(site_index_t))
    partners[low] = site
    return low


def history_with_open(
    double consumption,
    double weighted_response,
    double open_consumption,
    double open_submitted,
    seconds_t now,
):
    count_open_fast(&consumption, &weighted_response, open_consumption, open_submitted, now)
    return consumption, weighted_response


def order_by_awrt(consumption, weighted_response, asked=None):
    cdef Py_ssize_t count = len(consumption)
    cdef Py_ssize_t i
    cdef site_index_t* partners
    cdef Standing* standing
    if len(weighted_response) != count or asked is not None and len(asked) != count:
        raise ValueError(
            f"{count} consumptions, but {len(weighted_response)} weighted responses"
            + ("" if asked is None else f", and {len(asked)} times asked")
        )
    partners = <site_index_t*> calloc(count + 1, sizeof(site_index_t))
    standing = <Standing*> calloc(count + 1, sizeof(Standing))
    try:
        if partners == NULL or standing == NULL:
            raise MemoryError(f"no memory for {count} partners")
        for i in range(count):
            partners[i] = standing[i].site = <site_index_t> i
            standing[i].awrt = delegated_awrt(consumption[i], weighted_response[i])
            if asked is not None:
                standing[i].asked = asked[i]
        order_by_awrt_fast(partners, count, standing)
        return [partners[i] for i in range(count)]
    finally:
        free(partners)
        free(standing)
