"""Transfers over links that carry one at a time (`broker.model.transfers`).

When a task gets its place, what it lacks is sent: each transfer in the first gap of its link. When
it could begin at a site is found likewise before, without taking the links.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memmove

from broker.planner._instance cimport Instance
from broker.planner._timetable cimport (
    Span,
    Timetable,
    timetable_close,
    timetable_fit_fast,
    timetable_occupy_fast,
    timetable_open,
)
from broker.planner._types cimport money_t, seconds_t
from lrms_sim.kernel._memory cimport safe_realloc


cdef void links_close(Links* links) noexcept nogil:
    cdef int32_t i
    for i in range(links.count):
        timetable_close(&links.tables[i])
    free(links.tables)
    free(links.used)
    links.tables = NULL
    links.used = NULL
    links.count = links.room = 0


cdef int take_link(Links* links, Py_ssize_t pair, seconds_t begin, seconds_t end) except -1 nogil:
    cdef Timetable* table
    cdef Span full
    if not begin < end:
        return 0
    if links.row[pair] == 0:
        if links.count == links.room:
            links.tables = <Timetable*> safe_realloc(
                links.tables, 2 * links.room + 16, sizeof(Timetable), b"timetables of links"
            )
            links.used = <int32_t*> safe_realloc(
                links.used, 2 * links.room + 16, sizeof(int32_t), b"links in use"
            )
            links.room = 2 * links.room + 16
        timetable_open(&links.tables[links.count], 1)
        links.count += 1
        links.row[pair] = links.count
    table = &links.tables[links.row[pair] - 1]
    if table.count == 0:
        links.used[links.used_count] = links.row[pair] - 1
        links.used_count += 1
    timetable_occupy_fast(table, begin, end, 1, &full)
    return 0


cdef int begin_links(Scratch* scratch) except -1 nogil:
    # Before a schedule is built: what the one before has changed is as it was.
    cdef const Instance* instance = scratch.instance
    cdef Links* links = &scratch.links
    cdef Py_ssize_t i
    for i in range(links.used_count):
        links.tables[links.used[i]].count = 0
    links.used_count = 0
    for i in range(scratch.sent_count):
        scratch.arrived[scratch.sent_there[i]] = INFINITY
    scratch.sent_count = 0
    for i in range(instance.links_taken):
        take_link(links, instance.link_pair[i], instance.link_from[i], instance.link_until[i])
    return 0


cdef inline seconds_t since_of(const Scratch* scratch, int32_t parcel) noexcept nogil:
    cdef const Instance* instance = scratch.instance
    cdef task_t source = instance.parcel_source[parcel]
    return instance.parcel_since[parcel] if source < 0 else scratch.end[source]


cdef inline Py_ssize_t origin_of(const Scratch* scratch, int32_t parcel) noexcept nogil:
    cdef const Instance* instance = scratch.instance
    cdef task_t source = instance.parcel_source[parcel]
    return instance.parcel_origin[parcel] if source < 0 else instance.site[scratch.choice[source]]


cdef int32_t sort_parcels(Scratch* scratch, task_t task) noexcept nogil:
    # By when they exist, else as they come; returns how many there are.
    cdef const Instance* instance = scratch.instance
    cdef int32_t* order = scratch.parcels
    cdef int32_t first = instance.parcel_begin[task]
    cdef int32_t count = instance.parcel_begin[task + 1] - first
    cdef int32_t i, low, high, middle
    cdef seconds_t since
    for i in range(count):
        since = since_of(scratch, first + i)
        low = 0
        high = i
        if i > 0 and since_of(scratch, order[i - 1]) <= since:
            low = i
        while low < high:
            middle = (low + high) >> 1
            if since_of(scratch, order[middle]) <= since:
                low = middle + 1
            else:
                high = middle
        memmove(&order[low + 1], &order[low], (i - low) * sizeof(int32_t))
        order[low] = first + i
    return count


cdef seconds_t bring(
    Scratch* scratch, task_t task, int32_t count, int32_t site, bint book, money_t* cost
) except? -1.0 nogil:
    # When the files of a task are at a site, in the sorted order of their parcels, and what
    # sending them costs; `book` has them sent.
    cdef const Instance* instance = scratch.instance
    cdef int32_t sites = instance.sites
    cdef seconds_t latest = scratch.ready[task]
    cdef int32_t i, k, parcel
    cdef Py_ssize_t origin, pair, place
    cdef double size
    cdef bint missing
    cdef seconds_t seconds, begin, end
    cost[0] = 0.0
    for i in range(count):
        scratch.link_free[origin_of(scratch, scratch.parcels[i])] = -INFINITY
    for i in range(count):
        parcel = scratch.parcels[i]
        origin = origin_of(scratch, parcel)
        missing = False
        size = 0.0
        for k in range(instance.file_begin[parcel], instance.file_begin[parcel + 1]):
            place = <Py_ssize_t> instance.file[k] * sites + site
            if scratch.arrived[place] < INFINITY:
                latest = max(latest, scratch.arrived[place])
            elif origin != site:
                missing = True
                size += instance.file_size[instance.file[k]]
        if not missing:
            continue
        pair = origin * sites + site
        seconds = instance.latency[pair] + size / instance.bandwidth[pair]
        begin = since_of(scratch, parcel)
        if seconds > 0.0:
            begin = max(begin, scratch.link_free[origin])
            if scratch.links.row[pair] > 0:
                begin = timetable_fit_fast(
                    &scratch.links.tables[scratch.links.row[pair] - 1], begin, seconds, 1
                )
            scratch.link_free[origin] = begin + seconds
        end = begin + seconds
        latest = max(latest, end)
        cost[0] += size * instance.byte_price[pair]
        if not book:
            continue
        take_link(&scratch.links, pair, begin, end)
        for k in range(instance.file_begin[parcel], instance.file_begin[parcel + 1]):
            place = <Py_ssize_t> instance.file[k] * sites + site
            if scratch.arrived[place] == INFINITY:
                scratch.arrived[place] = end
                scratch.sent_there[scratch.sent_count] = place
                scratch.sent_count += 1
    return latest


cdef void look_contended(Scratch* scratch, task_t task) noexcept nogil:
    # Finds by site from when on a task can begin there; its predecessors are planned. Where it
    # waits for no file, `near` is NULL.
    cdef const Instance* instance = scratch.instance
    cdef int32_t count, site
    scratch.near = NULL
    scratch.near_cost = NULL
    if instance.parcel_begin[task] == instance.parcel_begin[task + 1]:
        return
    count = sort_parcels(scratch, task)
    scratch.near_least = INFINITY
    for site in range(instance.sites):
        scratch.near_room[site] = bring(
            scratch, task, count, site, False, &scratch.cost_room[site]
        )
        scratch.near_least = min(scratch.near_least, scratch.near_room[site])
    scratch.near = scratch.near_room
    if instance.transfers_priced:
        scratch.near_cost = scratch.cost_room


cdef int send_files(Scratch* scratch, task_t task, choice_t choice) except -1 nogil:
    # The task goes there, and its files are sent.
    cdef const Instance* instance = scratch.instance
    cdef int32_t count = instance.parcel_begin[task + 1] - instance.parcel_begin[task]
    cdef money_t cost
    # `parcels` still has them in order.
    scratch.ready[task] = bring(scratch, task, count, instance.site[choice], True, &cost)
    if scratch.near_cost != NULL:
        scratch.cost[task] += cost
    scratch.near = NULL
    scratch.near_cost = NULL
    return 0
