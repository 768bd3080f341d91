# A planning problem as a struct of arrays, read only once it is made.
from libc.stdint cimport int32_t, uint8_t

from broker.planner._types cimport (
    choice_t,
    money_t,
    resource_t,
    seconds_t,
    task_t,
    units_t,
    word_t,
    workflow_t,
)

cdef enum:
    FASTEST    # the order of RAS-1
    CHEAPEST   # the order of RAS-2
    ORDERS

cdef struct Instance:
    task_t tasks
    workflow_t workflows
    resource_t resources
    choice_t choices
    Py_ssize_t words                    # of a set of choices
    task_t keeping                      # tasks that an old plan has somewhere they can be now
    seconds_t now
    # By task.
    const double* work
    const seconds_t* release            # no start before; fixed predecessors have ended by then
    const workflow_t* workflow
    const money_t* least_cost           # on its cheapest choice, at mean prices
    const choice_t* kept                # where an old plan has it; -1: nowhere that it can be now
    const seconds_t* kept_end           # until when, in the old plan
    const seconds_t* shortest           # seconds that it takes at least
    const int32_t* predecessors         # how many are to be planned as well
    const int32_t* predecessor_begin    # into predecessor
    const task_t* predecessor
    const int32_t* successor_begin      # into successor
    const task_t* successor
    const int32_t* few_begin            # into few; empty for tasks with many choices
    const choice_t* few                 # choices of tasks that have few
    const word_t* usable[2]             # by order: by task a set of ranks
    # By rank and by choice.
    const choice_t* by_rank[2]          # by order: the choice of a rank
    const choice_t* rank[2]             # by order: the rank of a choice
    const double* performance           # of the primary resource
    const seconds_t* seconds            # that a task takes; negative: its work over the performance
    const money_t* rate                 # price of a second; nan where it varies with time
    const int32_t* demand_begin         # into the two below
    const resource_t* demand_resource
    const units_t* demand_units
    bint prices_vary
    # By resource.
    const units_t* capacity
    const int32_t* choice_begin         # into choice_of
    const choice_t* choice_of           # the choices that need a resource
    const seconds_t* shift              # from a moment to the week of 1970-01-01, local time
    const int32_t* opening_begin        # into the two below; none: always open
    const seconds_t* opening_from       # seconds of the week
    const seconds_t* opening_until
    const int32_t* price_begin          # into the three below
    const seconds_t* price_from         # second of the week
    const money_t* price
    const money_t* price_before         # what a unit costs from the week's begin until then
    const money_t* price_week           # what a unit costs in a week
    const int32_t* taken_begin          # into the three below: fixed tasks and closures
    const seconds_t* taken_from
    const seconds_t* taken_until
    const units_t* taken_units
    # By workflow.
    const seconds_t* earliest_start
    const seconds_t* due_date
    const money_t* budget
    const int32_t* favourite            # FASTEST or CHEAPEST: what RAS-3 follows
    const seconds_t* fixed_completion   # latest end of its fixed tasks; -inf without
    const money_t* fixed_cost           # of its fixed tasks
    const money_t* allowed              # of its budget, fixed tasks paid
    const money_t* least_total          # what its other tasks cost at least
    # Files and the network; no sites where no task waits for files.
    int32_t sites
    const int32_t* site                 # by choice: of its primary resource
    const double* latency               # by pair of sites
    const double* bandwidth
    const money_t* byte_price
    const int32_t* data_row             # by task: into static_ready; -1: nothing of that kind
    const seconds_t* static_ready       # by row and site: when what nothing planned makes is there
    const int32_t* edge_begin           # by task, into the two below
    const task_t* edge_source           # a predecessor that makes files of it
    const double* edge_size             # bytes
    # Files of one source and the same readers, where transfers cost something.
    bint transfers_priced
    int32_t bundles
    const int32_t* bundle_begin         # by task, into bundle
    const int32_t* bundle               # what it reads
    const double* bundle_size           # bytes
    const task_t* bundle_source         # the task that makes it; -1: none that is planned
    const int32_t* bundle_origin        # site of one that none makes
    const uint8_t* there                # by bundle and site: whether it is there from the beginning
    # Where links carry one transfer at a time: none of the above from data_row on, but for prices.
    bint contended
    int32_t files
    const int32_t* parcel_begin         # by task, into the next four: what it has from one source
    const task_t* parcel_source         # the task that makes it; -1: none that is planned
    const int32_t* parcel_origin        # site of what no planned task makes, and from when on
    const seconds_t* parcel_since       # it can be sent
    const int32_t* file_begin           # into file
    const int32_t* file
    const double* file_size             # bytes
    const seconds_t* file_there         # by file and site: since when it is, whatever is planned
    int32_t links_taken
    const int32_t* link_pair            # of sites, between which a link is taken
    const seconds_t* link_from
    const seconds_t* link_until

cdef class CompiledProblem:
    cdef Instance instance
    cdef dict arrays
    cdef bind_tasks(self)
    cdef bind_choices(self)
    cdef bind_resources(self)
    cdef bind_workflows(self)
    cdef bind_staging(self)

cdef inline seconds_t duration_on(
    const Instance* instance, task_t task, choice_t choice
) noexcept nogil:
    # The seconds that a task takes on a choice.
    cdef seconds_t seconds = instance.seconds[choice]
    return seconds if seconds >= 0.0 else instance.work[task] / instance.performance[choice]

cdef money_t placement_cost_fast(
    const Instance* instance, choice_t choice, seconds_t start, seconds_t duration
) noexcept nogil

# The first element of an array, which is kept elsewhere.
cdef const double* doubles(dict arrays, str name) except NULL
