# A table from sites to rows of arrays beside it, for a site that knows few of very many others:
# open addressing with linear probing, at most three quarters full. Rows are numbered as they come,
# and none is taken out.
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from grms.policy._decisions cimport site_index_t
from lrms_sim.kernel._memory cimport safe_calloc

cdef enum:
    FIRST_ROWS = 4

cdef struct SiteCell:
    site_index_t site
    int32_t row                  # plus 1; 0: the cell is empty

cdef struct SiteTable:
    SiteCell* cells
    uint32_t mask                # cells less 1, a power of two less 1
    int32_t count                # rows
    int32_t capacity             # rows that the table and the arrays beside it have room for


cdef inline uint32_t first_cell(const SiteTable* table, site_index_t site) noexcept nogil:
    # Neighbours go to different cells: sites are often met in their order.
    cdef uint32_t mixed = <uint32_t> site * <uint32_t> 2654435769
    return (mixed ^ (mixed >> 15)) & table.mask


cdef inline int32_t table_row(const SiteTable* table, site_index_t site) noexcept nogil:
    # The row of a site; -1 if it has none.
    cdef uint32_t place
    if table.count == 0:
        return -1
    place = first_cell(table, site)
    while table.cells[place].row != 0:
        if table.cells[place].site == site:
            return table.cells[place].row - 1
        place = (place + 1) & table.mask
    return -1


cdef inline void table_put(SiteTable* table, site_index_t site, int32_t row) noexcept nogil:
    cdef uint32_t place = first_cell(table, site)
    while table.cells[place].row != 0:
        place = (place + 1) & table.mask
    table.cells[place].site = site
    table.cells[place].row = row + 1


cdef inline bint table_is_full(const SiteTable* table) noexcept nogil:
    # Then the owner calls table_grow, and lets the arrays beside it grow to `capacity`.
    return table.count == table.capacity


cdef inline int table_grow(SiteTable* table) except -1 nogil:
    # By halves: many sites grow alike, and memory that none of them uses would add up.
    cdef SiteCell* before = table.cells
    cdef int64_t cells = 0 if before == NULL else <int64_t> table.mask + 1
    cdef int64_t capacity = table.capacity + table.capacity // 2
    cdef int64_t wanted = cells if cells > 0 else FIRST_ROWS
    cdef int64_t i
    if capacity < FIRST_ROWS:
        capacity = FIRST_ROWS
    while 3 * wanted < 4 * capacity:
        wanted *= 2
    if wanted > cells:
        table.cells = <SiteCell*> safe_calloc(
            wanted, sizeof(SiteCell), b"partners that were met"
        )
        table.mask = <uint32_t> (wanted - 1)
        for i in range(cells):
            if before[i].row != 0:
                table_put(table, before[i].site, before[i].row - 1)
        free(before)
    table.capacity = <int32_t> capacity
    return 0


cdef inline int32_t table_add(SiteTable* table, site_index_t site) noexcept nogil:
    # The row of a site that has none yet. There is room.
    cdef int32_t row = table.count
    table_put(table, site, row)
    table.count += 1
    return row


cdef inline void table_free(SiteTable* table) noexcept nogil:
    free(table.cells)
    memset(table, 0, sizeof(SiteTable))
