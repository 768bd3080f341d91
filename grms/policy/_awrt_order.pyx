"""In which order partners are asked (paper 003, section 7.1), compiled: by AWRT.

Each has a fast face (`..._fast`, for kernels, without checks) and a plain face that checks its
arguments and calls the fast one.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove

from lrms_sim._types cimport seconds_t


cdef inline double delegated_awrt(
    site_index_t site, const double* consumption, const double* weighted_response
) noexcept nogil:
    # No history counts as 0: such a partner comes first and so gets a chance to have one.
    return weighted_response[site] / consumption[site] if consumption[site] > 0.0 else 0.0


cdef inline bint asked_before(
    site_index_t one,
    double awrt,
    site_index_t other,
    double awrt_other,
    const int32_t* asked,
) noexcept nogil:
    # Whether one of two partners is asked before the other: by AWRT; ties go to the one that has
    # been asked less often where that counts (`asked` is not NULL), then by site order.
    if awrt != awrt_other:
        return awrt < awrt_other
    if asked != NULL and asked[one] != asked[other]:
        return asked[one] < asked[other]
    return one < other


cdef void order_by_awrt_fast(
    site_index_t* partners,
    Py_ssize_t count,
    const double* consumption,
    const double* weighted_response,
    const int32_t* asked,
) noexcept nogil:
    # Insertion sort of `partners` by ascending AWRT of what was delegated to each; sums are
    # indexed by site. Quick where they are nearly in that order.
    cdef Py_ssize_t i, place
    cdef site_index_t site, other
    cdef double awrt
    for i in range(1, count):
        site = partners[i]
        awrt = delegated_awrt(site, consumption, weighted_response)
        place = i
        while place > 0:
            other = partners[place - 1]
            if asked_before(
                other, delegated_awrt(other, consumption, weighted_response), site, awrt, asked
            ):
                break
            partners[place] = other
            place -= 1
        partners[place] = site


cdef Py_ssize_t place_by_awrt_fast(
    const site_index_t* partners,
    Py_ssize_t count,
    const double* consumption,
    const double* weighted_response,
    const int32_t* asked,
    site_index_t site,
) noexcept nogil:
    # Where a site stands, or would stand, among partners that are in order.
    cdef double awrt = delegated_awrt(site, consumption, weighted_response)
    cdef site_index_t other
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = count
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        other = partners[middle]
        if asked_before(
            other, delegated_awrt(other, consumption, weighted_response), site, awrt, asked
        ):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint behind(
    const site_index_t* partners,
    Py_ssize_t place,
    const double* consumption,
    const double* weighted_response,
    const int32_t* asked,
    site_index_t site,
    double awrt,
) noexcept nogil:
    # Whether a site is asked behind the one at that place.
    cdef site_index_t other = partners[place]
    return asked_before(
        other, delegated_awrt(other, consumption, weighted_response), site, awrt, asked
    )


cdef Py_ssize_t move_by_awrt_fast(
    site_index_t* partners,
    Py_ssize_t count,
    const double* consumption,
    const double* weighted_response,
    const int32_t* asked,
    Py_ssize_t place,
    Py_ssize_t near,
) noexcept nogil:
    # What order_by_awrt_fast would make of `partners`, which were in that order before the figures
    # of the one at `place` changed: a replay orders anew after every delegated job that ends.
    # Returns its new place; `near` is a guess at that, or -1: it saves a search through what is
    # not in the processor's cache where there are many sites.
    cdef site_index_t site = partners[place]
    cdef double awrt = delegated_awrt(site, consumption, weighted_response)
    cdef Py_ssize_t low = place
    if place < near < count and behind(
        partners, near, consumption, weighted_response, asked, site, awrt
    ) and (near + 1 == count or not behind(
        partners, near + 1, consumption, weighted_response, asked, site, awrt
    )):
        low = near
    elif place > 0 and not behind(
        partners, place - 1, consumption, weighted_response, asked, site, awrt
    ):
        low = place_by_awrt_fast(
            partners, place - 1, consumption, weighted_response, asked, site
        )
    else:
        low = place + place_by_awrt_fast(
            &partners[place + 1], count - 1 - place, consumption, weighted_response, asked, site
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
    """Returns a partner's sums with the jobs that are open there; see `AwrtLocation`."""
    count_open_fast(&consumption, &weighted_response, open_consumption, open_submitted, now)
    return consumption, weighted_response


def order_by_awrt(consumption, weighted_response, asked=None):
    """Returns partner numbers in ascending order of AWRT."""
    cdef Py_ssize_t count = len(consumption)
    cdef Py_ssize_t i
    cdef site_index_t* partners
    cdef int32_t* times
    cdef double* sums
    if len(weighted_response) != count or asked is not None and len(asked) != count:
        raise ValueError(
            f"{count} consumptions, but {len(weighted_response)} weighted responses"
            + ("" if asked is None else f", and {len(asked)} times asked")
        )
    partners = <site_index_t*> calloc(count + 1, sizeof(site_index_t))
    sums = <double*> calloc(2 * count + 1, sizeof(double))
    times = <int32_t*> calloc(count + 1, sizeof(int32_t))
    try:
        if partners == NULL or sums == NULL or times == NULL:
            raise MemoryError(f"no memory for {count} partners")
        for i in range(count):
            partners[i] = <site_index_t> i
            sums[i] = consumption[i]
            sums[count + i] = weighted_response[i]
            if asked is not None:
                times[i] = asked[i]
        order_by_awrt_fast(
            partners, count, sums, sums + count, NULL if asked is None else times
        )
        return [partners[i] for i in range(count)]
    finally:
        free(partners)
        free(sums)
        free(times)
