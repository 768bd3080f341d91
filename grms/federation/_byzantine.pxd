# What a replay keeps of a site that is no honest partner (grms/federation/sites.py).
from libc.stdlib cimport calloc, free

from grms.policy._decisions cimport TransferPolicy
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport job_index_t

cdef struct ByzantineNotes:
    const TransferPolicy** takes     # by partner: what decides about its offers
    bint lies                        # it reports run times that hide how long guests have waited
    bint holds                       # guests are put aside for now
    bint returns                     # guests are sent home just before their end
    bint hides                       # nobody learns that its jobs keep their state
    job_index_t* held                # in the order in which they came
    Py_ssize_t count
    Py_ssize_t capacity


cdef inline ByzantineNotes* byzantine_open(
    Py_ssize_t sites, bint lies, bint holds, bint returns, bint hides
) except NULL:
    cdef ByzantineNotes* rogue = <ByzantineNotes*> calloc(1, sizeof(ByzantineNotes))
    if rogue != NULL:
        rogue.lies = lies
        rogue.holds = holds
        rogue.returns = returns
        rogue.hides = hides
        rogue.takes = <const TransferPolicy**> calloc(sites, sizeof(TransferPolicy*))
    if rogue == NULL or rogue.takes == NULL:
        byzantine_close(rogue)
        raise MemoryError(f"no memory for {sites} sites")
    return rogue


cdef inline void byzantine_close(ByzantineNotes* rogue) noexcept nogil:
    if rogue != NULL:
        free(rogue.takes)
        free(rogue.held)
        free(rogue)


cdef inline int byzantine_hold(ByzantineNotes* rogue, job_index_t job) except -1 nogil:
    cdef Py_ssize_t capacity
    if rogue.count == rogue.capacity:
        capacity = doubled(rogue.capacity, 64)
        rogue.held = <job_index_t*> safe_realloc(
            rogue.held, capacity, sizeof(job_index_t), b"guests that are put aside"
        )
        rogue.capacity = capacity
    rogue.held[rogue.count] = job
    rogue.count += 1
    return 0
