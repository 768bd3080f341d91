# What is remembered of a block of waiting jobs whose values are straight lines over time.
#
# The largest of the lines when the block was last searched, and how fast the steepest one rises:
# a bound of all its values ever since. Jobs that leave make a bound too large, which is still
# right. Where the value of a job does not change with time, line and value are the same number,
# and the bound of a block of such jobs leaves out ties as well.
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t

from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t

cdef struct LineBlock:
    seconds_t time               # when the block was searched
    double most                  # no line was above it then
    double rise                  # no line rises faster
    double still                 # magnitudes of all that does not change with time
    double steepest              # no line rises or falls faster
    seconds_t request_min
    processors_t width_min
    job_index_t first            # the first of the jobs on `most`
    int32_t left                 # jobs that have left since the extremes were made tight


cdef inline void block_clear(LineBlock* block, seconds_t now) noexcept nogil:
    block.time = now
    block.most = -INFINITY
    block.rise = -INFINITY
    block.still = 0.0
    block.steepest = 0.0
    block.request_min = INFINITY
    block.width_min = 0x7FFFFFFF
    block.first = -1
    block.left = 0


cdef inline void block_add(
    LineBlock* block, job_index_t job, processors_t width, seconds_t request, double base,
    double slope, double still,
) noexcept nogil:
    cdef double height = base + slope * block.time
    if not height <= block.most:
        block.most = height
        block.first = job
    elif height == block.most and job < block.first:
        block.first = job
    if slope > block.rise:
        block.rise = slope
    if fabs(slope) > block.steepest:
        block.steepest = fabs(slope)
    if still > block.still:
        block.still = still
    if request < block.request_min:
        block.request_min = request
    if width < block.width_min:
        block.width_min = width


cdef inline double block_doubt(const LineBlock* block, seconds_t now) noexcept nogil:
    # How far values, their lines and the bound can be apart: together they are made with fewer
    # than 32 operations, each of them off by at most 2^-53 of the magnitudes added up.
    return 4e-15 * (block.still + block.steepest * (fabs(now) + fabs(block.time)))


cdef inline double block_bound(const LineBlock* block, seconds_t now) noexcept nogil:
    return block.most + block.rise * (now - block.time) + block_doubt(block, now)
