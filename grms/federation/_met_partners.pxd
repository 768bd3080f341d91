# What a site remembers of those partners alone that it has met: where sites are very many, records
# of all of them would take memory as the square of their number, and nearly all would be empty.
#
# A partner is met once it has been asked, where that counts, or has completed a job of the site. In
# the order by AWRT first come those that were not met, with AWRT 0 and asked 0 times, then those
# that were asked once and have completed nothing, both in order of places: for these two bits each
# are enough, which are kept for 64 places side by side, as sites are met in about this order. All
# others are ranked.
#
# A place is a site, or where a site knows some partners alone one of these. Places begin with
# `start` and go round: with 0 for all sites these have one and the same order, in which they all
# ask those in front first.
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from grms.federation._ledger cimport PartnerBooks, PartnerNotes, ledger_free
from grms.federation._site_table cimport (
    SiteTable,
    table_add,
    table_free,
    table_grow,
    table_is_full,
    table_row,
)
from grms.policy._decisions cimport site_index_t
from lrms_sim.kernel._memory cimport safe_realloc
from lrms_sim.kernel._types cimport processors_t

cdef enum:
    WIDTH_CLASSES = 31           # widths from 1, from 2, from 4 …
    NO_SITE = -1

cdef struct Dealing:
    # What a site has seen of its own jobs that a partner completed.
    double consumption           # Σ p·m
    double weighted_response     # Σ p·m·(C−r)
    int32_t promises             # row of `promises`, plus 1; 0 for none

cdef struct MetBits:
    # Of 64 places side by side.
    uint64_t met
    uint64_t once                # asked once, and nothing was completed

cdef struct MetPartners:
    SiteTable blocks             # of 64 places
    MetBits* bits                # by row of `blocks`
    # Met and not `once`, with a row of `SiteRun.standing` each, which has the place for `site`.
    SiteTable ranked
    SiteTable dealt              # those that have had a job of the site, or it one of theirs
    Dealing* dealings            # by row of `dealt`
    PartnerBooks* books          # same; NULL where no policy of the site has constraints
    PartnerNotes* promises       # of those partners that have had a job of a site with constraints
    int32_t promise_count
    int32_t promise_capacity
    bint constrained
    const site_index_t* known    # partners, in site order; NULL: all sites
    site_index_t place_count     # of these, or of all sites
    site_index_t start           # the one of them that has place 0
    # By class of widths, or for all widths the first of these where `known` is given: no partner
    # as wide before this place has not been met, or none is `once`. NO_SITE where none is at all.
    site_index_t front[WIDTH_CLASSES]
    site_index_t front_once[WIDTH_CLASSES]


cdef inline MetPartners* met_open(Py_ssize_t count) except NULL:
    # For one of `count` sites.
    cdef MetPartners* met = <MetPartners*> calloc(1, sizeof(MetPartners))
    cdef int kind
    if met == NULL:
        raise MemoryError("no memory for partners that were met")
    for kind in range(WIDTH_CLASSES):
        met.front_once[kind] = NO_SITE
    met.place_count = <site_index_t> count
    return met


cdef inline void met_close(MetPartners* met) noexcept nogil:
    cdef int32_t row
    if met == NULL:
        return
    for row in range(met.promise_count):
        ledger_free(&met.promises[row])
    table_free(&met.blocks)
    table_free(&met.ranked)
    table_free(&met.dealt)
    free(met.bits)
    free(met.dealings)
    free(met.books)
    free(met.promises)
    free(met)


cdef inline int width_class(processors_t width) noexcept nogil:
    # The largest power of two that is no wider, as a logarithm.
    cdef int found = 0
    while width > 1:
        width >>= 1
        found += 1
    return found


cdef inline bint is_met(const MetPartners* met, site_index_t place) noexcept nogil:
    cdef int32_t row = table_row(&met.blocks, place >> 6)
    return row >= 0 and (met.bits[row].met >> (place & 63)) & 1


cdef inline bint is_once(const MetPartners* met, site_index_t place) noexcept nogil:
    cdef int32_t row = table_row(&met.blocks, place >> 6)
    return row >= 0 and (met.bits[row].once >> (place & 63)) & 1


cdef inline int set_met(
    MetPartners* met, site_index_t place, bint once, processors_t processors
) except -1 nogil:
    # A partner of that size is met, asked once or ranked.
    cdef int32_t row = table_row(&met.blocks, place >> 6)
    cdef uint64_t bit = <uint64_t> 1 << (place & 63)
    cdef int kind
    if row < 0:
        if table_is_full(&met.blocks):
            table_grow(&met.blocks)
            met.bits = <MetBits*> safe_realloc(
                met.bits, met.blocks.capacity, sizeof(MetBits), b"partners that were met"
            )
        row = table_add(&met.blocks, place >> 6)
        met.bits[row].met = met.bits[row].once = 0
    met.bits[row].met |= bit
    if not once:
        met.bits[row].once &= ~bit
        return 0
    met.bits[row].once |= bit
    for kind in range(1 if met.known != NULL else 1 + width_class(processors)):
        if met.front_once[kind] == NO_SITE or met.front_once[kind] > place:
            met.front_once[kind] = place
    return 0


cdef inline site_index_t known_row(const MetPartners* met, site_index_t site) noexcept nogil:
    # The row in `known` of a site, or of the next one that is.
    cdef site_index_t low = 0
    cdef site_index_t high = met.place_count
    cdef site_index_t middle
    while low < high:
        middle = low + (high - low) // 2
        if met.known[middle] < site:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline site_index_t place_of(const MetPartners* met, site_index_t site) noexcept nogil:
    # The place of a partner, which is known.
    cdef site_index_t row = site if met.known == NULL else known_row(met, site)
    return row - met.start if row >= met.start else row + (met.place_count - met.start)


cdef inline site_index_t site_at(const MetPartners* met, site_index_t place) noexcept nogil:
    cdef site_index_t behind = met.place_count - met.start
    cdef site_index_t row = place + met.start if place < behind else place - behind
    return row if met.known == NULL else met.known[row]


cdef inline void start_at_itself(MetPartners* met, site_index_t site) noexcept nogil:
    # The site, which has met nobody yet, gets an order of its own, that begins behind itself.
    cdef site_index_t row = site if met.known == NULL else known_row(met, site)
    met.start = row if row < met.place_count else 0


cdef inline int32_t dealt_row(MetPartners* met, site_index_t site) except -1 nogil:
    # The row of a partner in `dealings` and `books`, empty if it is new.
    cdef int32_t row = table_row(&met.dealt, site)
    if row >= 0:
        return row
    if table_is_full(&met.dealt):
        table_grow(&met.dealt)
        met.dealings = <Dealing*> safe_realloc(
            met.dealings, met.dealt.capacity, sizeof(Dealing), b"records of partners"
        )
        if met.constrained:
            met.books = <PartnerBooks*> safe_realloc(
                met.books, met.dealt.capacity, sizeof(PartnerBooks), b"records of partners"
            )
    row = table_add(&met.dealt, site)
    memset(&met.dealings[row], 0, sizeof(Dealing))
    if met.constrained:
        memset(&met.books[row], 0, sizeof(PartnerBooks))
    return row


cdef inline PartnerNotes* promises_of(MetPartners* met, site_index_t site) except NULL nogil:
    # The record of a partner's promises, empty if it is new.
    cdef Dealing* dealing = &met.dealings[dealt_row(met, site)]
    if dealing.promises == 0:
        if met.promise_count == met.promise_capacity:
            met.promise_capacity += met.promise_capacity // 2 + 2
            met.promises = <PartnerNotes*> safe_realloc(
                met.promises, met.promise_capacity, sizeof(PartnerNotes), b"records of partners"
            )
        memset(&met.promises[met.promise_count], 0, sizeof(PartnerNotes))
        met.promise_count += 1
        dealing.promises = met.promise_count
    return &met.promises[dealing.promises - 1]
