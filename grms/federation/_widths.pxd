# Which site is the next one that could run a job of some width: a tree of maxima over the sizes of
# all sites. Most of very many sites may be too small for a wide job, and are not looked at one by
# one.
from grms.policy._decisions cimport site_index_t
from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._types cimport processors_t

cdef struct SiteWidths:
    processors_t* most           # the root at 1, the children of i at 2i and 2i + 1
    Py_ssize_t leaves            # a power of two; site i is at leaves + i; no site is at the last


cdef inline int widths_open(
    SiteWidths* widths, const processors_t* processors, Py_ssize_t count
) except -1:
    cdef Py_ssize_t i
    widths.leaves = 1
    while widths.leaves <= count:
        widths.leaves *= 2
    widths.most = <processors_t*> safe_calloc(
        2 * widths.leaves, sizeof(processors_t), b"sizes of sites"
    )
    for i in range(count):
        widths.most[widths.leaves + i] = processors[i]
    for i in range(widths.leaves - 1, 0, -1):
        widths.most[i] = widths.most[2 * i]
        if widths.most[2 * i + 1] > widths.most[i]:
            widths.most[i] = widths.most[2 * i + 1]
    return 0


cdef inline site_index_t next_as_wide(
    const SiteWidths* widths, site_index_t site, processors_t width
) noexcept nogil:
    # The first site from this one on, at most one past the last, with at least so many processors,
    # at least 1; -1 for none.
    cdef Py_ssize_t node = widths.leaves + site
    if widths.most[node] >= width:
        return site
    while node & 1 or widths.most[node + 1] < width:
        node >>= 1
        if node <= 1:
            return -1
    node += 1
    while node < widths.leaves:
        node *= 2
        if widths.most[node] < width:
            node += 1
    return <site_index_t> (node - widths.leaves)
