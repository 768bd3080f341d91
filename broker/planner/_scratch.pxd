# Memory for one schedule at a time, shared by the builder and readers of its schedules.
from libc.stdint cimport int32_t, uint8_t

from broker.planner._instance cimport Instance
from broker.planner._timetable cimport Timetable
from broker.planner._types cimport choice_t, money_t, seconds_t, task_t, word_t

cdef enum:
    BUCKETS_MAX = 256

cdef enum Strategy:
    # Resource allocation strategies (paper, section 3.1) …
    RAS_1    # the fastest of the earliest available
    RAS_2    # the cheapest of the earliest available
    RAS_3    # either, by the workflow's preference
    # … and our own.
    RAS_4    # where the task ends first
    RAS_5    # likewise, of what the task's share of the workflow's budget allows
    RAS_6    # where the old plan has it, unless it ends later there; else as RAS-5
    STRATEGIES

cdef struct Sets:
    # Where in time choices may be free: sets of ranks, by word and bucket.
    word_t* maybe_free
    word_t* untouched            # the same: choices that are at no moment fully taken
    word_t* live                 # by bucket: the words of maybe_free that are not empty

cdef struct Links:
    # When links are taken, each a pair of sites. A pair has a timetable from its first transfer on.
    int32_t* row                 # by pair; 0: none yet, else one more than that of its table
    Timetable* tables
    int32_t count                # tables
    int32_t room                 # for tables
    int32_t* used                # tables that the schedule has changed
    int32_t used_count

cdef struct Scratch:
    # Memory for one schedule at a time: one block plus the timetables, which stop growing after a
    # while.
    const Instance* instance
    Timetable* tables            # by resource
    Timetable* taken             # by resource: before anything is planned
    const choice_t* assigned     # by task what it has to take; NULL: the strategy decides
    # The schedule: by task.
    choice_t* choice             # -1: not planned
    seconds_t* start
    seconds_t* end
    money_t* cost
    task_t* order                # the sequence in which tasks were planned
    task_t planned
    # Evaluation of the schedule: by workflow.
    seconds_t* completion
    money_t* spent
    # While building with RAS-5: by workflow.
    money_t* left                # of its budget
    money_t* least_left          # what its tasks that are not planned cost at least
    # While building: by task.
    seconds_t* ready             # its predecessors have ended; once placed: and its files are there
    int32_t* missing             # predecessors that are not planned
    int32_t* position            # of its gene; -1: not passed yet
    task_t* released             # heap of waiting tasks that may go, by position
    int32_t buckets              # slices of time, from now on
    seconds_t width              # of a bucket
    Sets sets[2]                 # by order
    Sets sets_before[2]          # the same before anything is planned
    Py_ssize_t live_words        # of a set of words
    int32_t first_live[2]        # no bucket before it has any
    word_t* candidates           # words
    bint in_use[2]               # orders that the present strategy follows
    # For the task that is being placed, by site; NULL: files do not matter.
    const seconds_t* near        # when it can begin there
    const money_t* near_cost     # what bringing its files there costs
    seconds_t near_least         # the least of `near`
    seconds_t* near_room
    money_t* cost_room
    uint8_t* sent                # by bundle and site
    # Where links carry one transfer at a time.
    Links links
    seconds_t* arrived           # by file and site since when it is there; infinity: not sent
    int32_t* parcels             # of the task that is being placed, in the order of when they exist
    seconds_t* link_free         # by source: when the task's transfers before have ended
    Py_ssize_t* sent_there       # places in `arrived` that the schedule has changed
    Py_ssize_t sent_count
