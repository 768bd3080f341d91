"""A planning problem as a struct of arrays, for the kernels to read."""

from libc.math cimport floor, isnan
from libc.stdint cimport int32_t, uint8_t, uint64_t

from broker.planner._types cimport choice_t, money_t, resource_t, seconds_t

cdef seconds_t WEEK = 604_800.0


cdef const double* doubles(dict arrays, str name) except NULL:
    cdef const double[::1] view = arrays[name]
    return &view[0]


cdef const int32_t* integers(dict arrays, str name) except NULL:
    cdef const int32_t[::1] view = arrays[name]
    return &view[0]


cdef const uint64_t* words(dict arrays, str name) except NULL:
    cdef const uint64_t[::1] view = arrays[name]
    return &view[0]


cdef const uint8_t* flags(dict arrays, str name) except NULL:
    cdef const uint8_t[::1] view = arrays[name]
    return &view[0]


cdef class CompiledProblem:
    """Owns the arrays of one problem; made by `broker.planner.compilation.compile_problem`.

    `arrays` are contiguous, of float64, int32, uint64 or uint8, and not empty; _instance.pxd
    describes them.
    """

    def __init__(self, dict sizes, dict arrays):
        self.arrays = arrays
        cdef Instance* instance = &self.instance
        instance.tasks = sizes["tasks"]
        instance.workflows = sizes["workflows"]
        instance.resources = sizes["resources"]
        instance.choices = sizes["choices"]
        instance.words = sizes["words"]
        instance.prices_vary = sizes["prices_vary"]
        instance.now = sizes["now"]
        instance.keeping = sizes["keeping"]
        self.bind_tasks()
        self.bind_choices()
        self.bind_resources()
        self.bind_workflows()
        instance.sites = sizes["sites"]
        instance.bundles = sizes["bundles"]
        instance.transfers_priced = sizes["transfers_priced"]
        instance.contended = sizes["contended"]
        instance.files = sizes["files"]
        instance.links_taken = sizes["links_taken"]
        self.bind_staging()

    cdef bind_tasks(self):
        cdef Instance* instance = &self.instance
        cdef dict arrays = self.arrays
        instance.work = doubles(arrays, "work")
        instance.release = doubles(arrays, "release")
        instance.workflow = integers(arrays, "workflow")
        instance.least_cost = doubles(arrays, "least_cost")
        instance.shortest = doubles(arrays, "shortest")
        instance.kept = integers(arrays, "kept")
        instance.kept_end = doubles(arrays, "kept_end")
        instance.predecessors = integers(arrays, "predecessors")
        instance.predecessor_begin = integers(arrays, "predecessor_begin")
        instance.predecessor = integers(arrays, "predecessor")
        instance.successor_begin = integers(arrays, "successor_begin")
        instance.successor = integers(arrays, "successor")
        instance.few_begin = integers(arrays, "few_begin")
        instance.few = integers(arrays, "few")
        instance.usable[FASTEST] = words(arrays, "usable_fastest")
        instance.usable[CHEAPEST] = words(arrays, "usable_cheapest")

    cdef bind_choices(self):
        cdef Instance* instance = &self.instance
        cdef dict arrays = self.arrays
        instance.by_rank[FASTEST] = integers(arrays, "by_rank_fastest")
        instance.by_rank[CHEAPEST] = integers(arrays, "by_rank_cheapest")
        instance.rank[FASTEST] = integers(arrays, "rank_fastest")
        instance.rank[CHEAPEST] = integers(arrays, "rank_cheapest")
        instance.performance = doubles(arrays, "performance")
        instance.seconds = doubles(arrays, "seconds")
        instance.rate = doubles(arrays, "rate")
        instance.demand_begin = integers(arrays, "demand_begin")
        instance.demand_resource = integers(arrays, "demand_resource")
        instance.demand_units = integers(arrays, "demand_units")

    cdef bind_resources(self):
        cdef Instance* instance = &self.instance
        cdef dict arrays = self.arrays
        instance.capacity = integers(arrays, "capacity")
        instance.choice_begin = integers(arrays, "choice_begin")
        instance.choice_of = integers(arrays, "choice_of")
        instance.shift = doubles(arrays, "shift")
        instance.opening_begin = integers(arrays, "opening_begin")
        instance.opening_from = doubles(arrays, "opening_from")
        instance.opening_until = doubles(arrays, "opening_until")
        instance.price_begin = integers(arrays, "price_begin")
        instance.price_from = doubles(arrays, "price_from")
        instance.price = doubles(arrays, "price")
        instance.price_before = doubles(arrays, "price_before")
        instance.price_week = doubles(arrays, "price_week")
        instance.taken_begin = integers(arrays, "taken_begin")
        instance.taken_from = doubles(arrays, "taken_from")
        instance.taken_until = doubles(arrays, "taken_until")
        instance.taken_units = integers(arrays, "taken_units")

    cdef bind_workflows(self):
        cdef Instance* instance = &self.instance
        cdef dict arrays = self.arrays
        instance.earliest_start = doubles(arrays, "earliest_start")
        instance.due_date = doubles(arrays, "due_date")
        instance.budget = doubles(arrays, "budget")
        instance.favourite = integers(arrays, "favourite")
        instance.fixed_completion = doubles(arrays, "fixed_completion")
        instance.fixed_cost = doubles(arrays, "fixed_cost")
        instance.allowed = doubles(arrays, "allowed")
        instance.least_total = doubles(arrays, "least_total")

    cdef bind_staging(self):
        cdef Instance* instance = &self.instance
        cdef dict arrays = self.arrays
        instance.site = integers(arrays, "site")
        instance.latency = doubles(arrays, "latency")
        instance.bandwidth = doubles(arrays, "bandwidth")
        instance.byte_price = doubles(arrays, "byte_price")
        instance.data_row = integers(arrays, "data_row")
        instance.static_ready = doubles(arrays, "static_ready")
        instance.edge_begin = integers(arrays, "edge_begin")
        instance.edge_source = integers(arrays, "edge_source")
        instance.edge_size = doubles(arrays, "edge_size")
        instance.bundle_begin = integers(arrays, "bundle_begin")
        instance.bundle = integers(arrays, "bundle")
        instance.bundle_size = doubles(arrays, "bundle_size")
        instance.bundle_source = integers(arrays, "bundle_source")
        instance.bundle_origin = integers(arrays, "bundle_origin")
        instance.there = flags(arrays, "there")
        instance.parcel_begin = integers(arrays, "parcel_begin")
        instance.parcel_source = integers(arrays, "parcel_source")
        instance.parcel_origin = integers(arrays, "parcel_origin")
        instance.parcel_since = doubles(arrays, "parcel_since")
        instance.file_begin = integers(arrays, "file_begin")
        instance.file = integers(arrays, "file")
        instance.file_size = doubles(arrays, "file_size")
        instance.file_there = doubles(arrays, "file_there")
        instance.link_pair = integers(arrays, "link_pair")
        instance.link_from = doubles(arrays, "link_from")
        instance.link_until = doubles(arrays, "link_until")

    @property
    def tasks(self) -> int:
        return self.instance.tasks

    @property
    def choices(self) -> int:
        return self.instance.choices

    @property
    def waits(self) -> bool:
        """Whether tasks wait for files."""
        return self.instance.sites > 0

    def column(self, str name):
        """Returns a read-only array."""
        return self.arrays[name]

    def placement_cost(self, choice_t choice, seconds_t start, seconds_t duration) -> float:
        """Returns what a choice costs from a start on."""
        if not 0 <= choice < self.instance.choices:
            raise ValueError(f"choice {choice} of {self.instance.choices}")
        return placement_cost_fast(&self.instance, choice, start, duration)


cdef money_t price_until(
    const Instance* instance, resource_t resource, seconds_t seconds
) noexcept nogil:
    # Price per unit from the beginning of a week on.
    cdef double weeks = floor(seconds / WEEK)
    cdef seconds_t second = seconds - weeks * WEEK
    cdef int32_t begin = instance.price_begin[resource]
    cdef int32_t step = instance.price_begin[resource + 1] - 1
    while step > begin and instance.price_from[step] > second:
        step -= 1
    return (
        weeks * instance.price_week[resource]
        + instance.price_before[step]
        + (second - instance.price_from[step]) * instance.price[step]
    )


cdef money_t price_between(
    const Instance* instance, resource_t resource, seconds_t start, seconds_t duration
) noexcept nogil:
    # Price per unit from a start on, relative to the week of the start: rounding a moment since
    # 1970 exceeds the tolerance of budgets.
    cdef seconds_t local = start + instance.shift[resource]
    cdef seconds_t second = local - floor(local / WEEK) * WEEK
    return (
        price_until(instance, resource, second + duration)
        - price_until(instance, resource, second)
    )


cdef money_t placement_cost_fast(
    const Instance* instance, choice_t choice, seconds_t start, seconds_t duration
) noexcept nogil:
    # The integral of equation 2.3.
    cdef money_t rate = instance.rate[choice]
    cdef money_t cost = 0.0
    cdef int32_t i
    if not isnan(rate):
        return rate * duration
    for i in range(instance.demand_begin[choice], instance.demand_begin[choice + 1]):
        cost += instance.demand_units[i] * price_between(
            instance, instance.demand_resource[i], start, duration
        )
    return cost
