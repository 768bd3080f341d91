"""The federation kernel: K machines and their policies replayed on one clock, without the GIL.

How they are replayed: `_replay`.
"""

from libc.math cimport NAN
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from grms.federation._due cimport due_close, due_open
from grms.federation._ledger cimport delegated_room
from grms.federation._met_partners cimport start_at_itself
from grms.federation._replay cimport drain, replay
from grms.federation._sites cimport (
    Federation,
    SiteRun,
    byzantine_make,
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
)
from grms.federation._tariffs cimport tariffs_open
from grms.federation._wide_area cimport WideArea, wide_area_close
from grms.federation._widths cimport widths_open
from grms.policy._decisions cimport site_index_t
from grms.policy._decisions cimport CompiledTransfer
from lrms_sim.kernel._machine cimport JobColumns, core_bind, core_open
from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport processors_t, seconds_t

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
                drain(&self.federation, count)
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
