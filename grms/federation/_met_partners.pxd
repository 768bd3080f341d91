# What a site remembers of those partners alone that it has met: where sites are very many, records of
# all of them would take memory as the square of their number, and nearly all would be empty.
#
# A partner is met once it has been asked, where that counts, or has completed a job of the site. Those that
# have not been met all have AWRT 0 and were asked 0 times; so they come before the others, in site
# order, and no list of them is needed.
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from grms.federation._ledger cimport PartnerNotes, ledger_free
from grms.federation._site_table cimport (
    SiteTable,
    table_add,
    table_free,
    table_grow,
    table_is_full,
    table_row,
)
from grms.policy._awrt_order cimport Standing, site_index_t
from lrms_sim.kernel._memory cimport safe_realloc
from lrms_sim.kernel._types cimport processors_t

cdef enum:
    WIDTH_CLASSES = 31           # widths from 1, from 2, from 4 …

cdef struct Dealing:
    # What a site has seen of jobs of its own that partner completed.
    double consumption           # Σ p·m
    double weighted_response     # Σ p·m·(C−r)

cdef struct MetPartners:
    SiteTable asked              # met ones, with a row of `SiteRun.standing` each
    SiteTable dealt              # those that have had a job of the site, or it one of theirs
    Dealing* dealings            # by row of `dealt`
    PartnerNotes* notes          # same; NULL where no policy of the site has constraints
    bint constrained
    const site_index_t* known    # partners, in site order; NULL: all sites
    Py_ssize_t known_count
    # By class of widths: no partner before this one that is as wide has not been met. A place in `known`
    # where that is given, for all widths the first of these.
    site_index_t front[WIDTH_CLASSES]


cdef inline MetPartners* met_open() except NULL:
    cdef MetPartners* met = <MetPartners*> calloc(1, sizeof(MetPartners))
    if met == NULL:
        raise MemoryError("no memory for partners that were met")
    return met


cdef inline void met_close(MetPartners* met) noexcept nogil:
    cdef Py_ssize_t row
    if met == NULL:
        return
    if met.notes != NULL:
        for row in range(met.dealt.count):
            ledger_free(&met.notes[row])
    table_free(&met.asked)
    table_free(&met.dealt)
    free(met.dealings)
    free(met.notes)
    free(met)


cdef inline int width_class(processors_t width) noexcept nogil:
    # The largest power of two that is no wider, as a logarithm.
    cdef int found = 0
    while width > 1:
        width >>= 1
        found += 1
    return found


cdef inline int32_t dealt_row(MetPartners* met, site_index_t site) except -1 nogil:
    # The row of a partner in `dealings` and `notes`, empty if it is new.
    cdef int32_t row = table_row(&met.dealt, site)
    if row >= 0:
        return row
    if table_is_full(&met.dealt):
        table_grow(&met.dealt)
        met.dealings = <Dealing*> safe_realloc(
            met.dealings, met.dealt.capacity, sizeof(Dealing), b"records of partners"
        )
        if met.constrained:
            met.notes = <PartnerNotes*> safe_realloc(
                met.notes, met.dealt.capacity, sizeof(PartnerNotes), b"records of partners"
            )
    row = table_add(&met.dealt, site)
    memset(&met.dealings[row], 0, sizeof(Dealing))
    if met.constrained:
        memset(&met.notes[row], 0, sizeof(PartnerNotes))
    return row
