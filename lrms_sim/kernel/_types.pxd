# The number types of the kernels, in one place: no kernel uses a bare `int` for a quantity.
from libc.stdint cimport int32_t, int64_t

ctypedef double seconds_t            # moments and spans; whole SWF seconds stay exact
ctypedef int32_t processors_t        # processors of one job or one machine
ctypedef int64_t processors_sum_t    # processors summed over a queue
ctypedef int32_t job_index_t         # row of a job table
