"""In which order partners are asked (paper 003, section 7.1), compiled: by AWRT.

Each has a fast form (`..._fast`, for kernels, without checks) and a plain one that checks its
arguments and calls it.
"""

from libc.stdlib cimport calloc, free
from libc.string cimport memmove

from lrms_sim.kernel._types cimport seconds_t


cdef void order_by_awrt_fast(
    site_index_t* partners, Py_ssize_t count, const Standing* standing
) noexcept nogil:
    # Insertion sort of `partners`, with `standing` by site; fast if they are nearly in order.
    cdef Py_ssize_t i, place
    cdef site_index_t site, other
    for i in range(1, count):
        site = partners[i]
        place = i
        while place > 0:
            other = partners[place - 1]
            if asked_before(other, site, standing):
                break
            partners[place] = other
            place -= 1
        partners[place] = site


cdef Py_ssize_t place_by_awrt_fast(
    const site_index_t* partners,
    Py_ssize_t count,
    const Standing* standing,
    site_index_t site,
) noexcept nogil:
    # The rank of a site among sorted partners.
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = count
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if asked_before(partners[middle], site, standing):
            low = middle + 1
        else:
            high = middle
    return low


cdef Py_ssize_t move_by_awrt_fast(
    site_index_t* partners,
    Py_ssize_t count,
    const Standing* standing,
    Py_ssize_t place,
    Py_ssize_t near,
) noexcept nogil:
    # The result of order_by_awrt_fast after only the figures of the one at `place` have changed: a
    # replay reorders after every delegated job that ends. Returns its new place; `near` is a
    # guess, or -1, which saves a search through uncached memory if there are many sites.
    cdef site_index_t site = partners[place]
    cdef Py_ssize_t low = place
    if place < near < count and asked_before(partners[near], site, standing) and (
        near + 1 == count or not asked_before(partners[near + 1], site, standing)
    ):
        low = near
    elif place > 0 and not asked_before(partners[place - 1], site, standing):
        low = place_by_awrt_fast(partners, place - 1, standing, site)
    else:
        low = place + place_by_awrt_fast(
            &partners[place + 1], count - 1 - place, standing, site
        )
    if low < place:
        memmove(&partners[low + 1], &partners[low], (place - low) * sizeof(site_index_t))
    else:
        memmove(&partners[place], &partners[place + 1], (low - place) * sizeof(site_index_t))
    partners[low] = site
    return low


def history_with_open(
    double consumption,
    double weighted_response,
    double open_consumption,
    double open_submitted,
    seconds_t now,
):
    count_open_fast(&consumption, &weighted_response, open_consumption, open_submitted, now)
    return consumption, weighted_response


def order_by_awrt(consumption, weighted_response, asked=None):
    cdef Py_ssize_t count = len(consumption)
    cdef Py_ssize_t i
    cdef site_index_t* partners
    cdef Standing* standing
    if len(weighted_response) != count or asked is not None and len(asked) != count:
        raise ValueError(
            f"{count} consumptions, but {len(weighted_response)} weighted responses"
            + ("" if asked is None else f", and {len(asked)} times asked")
        )
    partners = <site_index_t*> calloc(count + 1, sizeof(site_index_t))
    standing = <Standing*> calloc(count + 1, sizeof(Standing))
    try:
        if partners == NULL or standing == NULL:
            raise MemoryError(f"no memory for {count} partners")
        for i in range(count):
            partners[i] = standing[i].site = <site_index_t> i
            standing[i].awrt = delegated_awrt(consumption[i], weighted_response[i])
            if asked is not None:
                standing[i].asked = asked[i]
        order_by_awrt_fast(partners, count, standing)
        return [partners[i] for i in range(count)]
    finally:
        free(partners)
        free(standing)
