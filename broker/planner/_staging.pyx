"""When the files of a task can be at each site, and what bringing them there costs.

Moments do not depend on what else is planned at a site: transfers begin as soon as files are
there, and do not slow each other down (`broker.model.transfers`). Costs do, as a file is sent to a
site once. Where links carry one transfer at a time, `_links` does all of this.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from broker.planner._instance cimport Instance
from broker.planner._links cimport begin_links, look_contended, send_files
from broker.planner._types cimport money_t, seconds_t


cdef int begin_staging(Scratch* scratch) except -1 nogil:
    # Before a schedule is built.
    cdef const Instance* instance = scratch.instance
    scratch.near = NULL
    scratch.near_cost = NULL
    if instance.contended:
        begin_links(scratch)
    elif instance.transfers_priced:
        memcpy(scratch.sent, instance.there, instance.bundles * instance.sites * sizeof(uint8_t))
    return 0


cdef void look_near(Scratch* scratch, task_t task) noexcept nogil:
    # Finds by site from when on a task can begin there; its predecessors are planned. Where it
    # waits for no file, `near` is NULL.
    cdef const Instance* instance = scratch.instance
    cdef int32_t sites = instance.sites
    cdef int32_t row = instance.data_row[task]
    cdef int32_t edge, site
    cdef Py_ssize_t from_site
    cdef seconds_t ready = scratch.ready[task]
    cdef seconds_t* near = scratch.near_room
    cdef const double* latency
    cdef const double* bandwidth
    cdef const seconds_t* known
    cdef double size
    cdef seconds_t since, moment, least
    if instance.contended:
        look_contended(scratch, task)
        return
    scratch.near = NULL
    scratch.near_cost = NULL
    if row < 0 and instance.edge_begin[task] == instance.edge_begin[task + 1]:
        return
    for site in range(sites):
        near[site] = ready
    if row >= 0:
        known = &instance.static_ready[<Py_ssize_t> row * sites]
        for site in range(sites):
            near[site] = max(near[site], known[site])
    for edge in range(instance.edge_begin[task], instance.edge_begin[task + 1]):
        since = scratch.end[instance.edge_source[edge]]
        size = instance.edge_size[edge]
        from_site = instance.site[scratch.choice[instance.edge_source[edge]]]
        latency = &instance.latency[from_site * sites]
        bandwidth = &instance.bandwidth[from_site * sites]
        for site in range(sites):
            moment = since + (latency[site] + size / bandwidth[site])
            near[site] = max(near[site], moment)
    least = INFINITY
    for site in range(sites):
        least = min(least, near[site])
    scratch.near = near
    scratch.near_least = least
    if instance.transfers_priced:
        look_costs(scratch, task)


cdef inline int32_t bundle_site(const Scratch* scratch, int32_t bundle) noexcept nogil:
    cdef const Instance* instance = scratch.instance
    cdef task_t source = instance.bundle_source[bundle]
    return instance.bundle_origin[bundle] if source < 0 else instance.site[scratch.choice[source]]


cdef void look_costs(Scratch* scratch, task_t task) noexcept nogil:
    cdef const Instance* instance = scratch.instance
    cdef int32_t sites = instance.sites
    cdef int32_t k, bundle, site
    cdef Py_ssize_t place
    cdef const money_t* price
    for site in range(sites):
        scratch.cost_room[site] = 0.0
    for k in range(instance.bundle_begin[task], instance.bundle_begin[task + 1]):
        bundle = instance.bundle[k]
        price = &instance.byte_price[<Py_ssize_t> bundle_site(scratch, bundle) * sites]
        place = <Py_ssize_t> bundle * sites
        for site in range(sites):
            if not scratch.sent[place + site]:
                scratch.cost_room[site] += instance.bundle_size[bundle] * price[site]
    scratch.near_cost = scratch.cost_room


cdef int settle(Scratch* scratch, task_t task, choice_t choice) except -1 nogil:
    # The task goes there, and its files are sent.
    cdef const Instance* instance = scratch.instance
    cdef int32_t site = instance.site[choice]
    cdef int32_t k
    if instance.contended:
        return send_files(scratch, task, choice)
    scratch.ready[task] = scratch.near[site]
    if scratch.near_cost != NULL:
        scratch.cost[task] += scratch.near_cost[site]
        for k in range(instance.bundle_begin[task], instance.bundle_begin[task + 1]):
            scratch.sent[<Py_ssize_t> instance.bundle[k] * instance.sites + site] = True
    scratch.near = NULL
    scratch.near_cost = NULL
    return 0
