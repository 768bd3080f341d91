"""Writes the rows of a schedule as CSV and numbers the processors of each job.

The kernels only count processors, so numbers are assigned here: every job takes the lowest free
ones at its start. At one instant ends come before starts, and starts follow the order of the rows.
Rows are written in order of arrival, not of start, so the intervals of a started job are held until
its turn; otherwise only one buffer of text is held.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, strlen

from lrms_sim.kernel._digits cimport put_real, put_whole
from lrms_sim.kernel._memory cimport safe_realloc
from lrms_sim.kernel._processor_map cimport (
    Interval,
    Intervals,
    ProcessorMap,
    give_back,
    map_open,
    take_lowest,
)
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t

cdef Py_ssize_t BUFFER_BYTES = 1 << 20   # text gathered before it is handed on
cdef Py_ssize_t NUMBER_BYTES_MAX = 26    # the longest float64 or int64, and a comma
cdef Py_ssize_t FIXED_BYTES_MAX = 1024   # a row without names and processors

cdef struct Allocation:
    Py_ssize_t count
    int holders             # the row that is still to be written, and the job that still runs
    Interval* intervals     # behind this struct in the same block

cdef struct Running:
    seconds_t end_time
    job_index_t job
    int16_t machine
    Allocation* allocation

cdef inline bint ends_before(const Running* left, const Running* right) noexcept nogil:
    return left.end_time < right.end_time or (
        left.end_time == right.end_time and left.job < right.job
    )


cdef inline char* put_bytes(char* at, const char* text, Py_ssize_t length) noexcept nogil:
    memcpy(at, text, length)
    return at + length


cdef inline char* put_text(char* at, const char* text) noexcept nogil:
    return put_bytes(at, text, strlen(text))


cdef inline void let_go(Allocation* allocation) noexcept nogil:
    allocation.holders -= 1
    if allocation.holders == 0:
        free(allocation)


cdef char* put_intervals(char* at, const Allocation* allocation, int64_t number) noexcept nogil:
    cdef Py_ssize_t index
    for index in range(allocation.count):
        if index:
            at[0] = b" "
            at += 1
        at = put_whole(at, number + allocation.intervals[index].first)
        if allocation.intervals[index].last > allocation.intervals[index].first:
            at[0] = b"-"
            at = put_whole(at + 1, number + allocation.intervals[index].last)
    return at


cdef class RowWriter:
    """The state of one file while it is written."""

    cdef object sink
    cdef list names
    cdef Py_ssize_t machines
    cdef ProcessorMap* maps
    cdef Running* heap
    cdef Py_ssize_t running
    cdef Py_ssize_t heap_capacity
    cdef Allocation** allocations    # by row; NULL before the job's start and after its line
    cdef Py_ssize_t rows
    cdef Intervals scratch
    cdef char* buffer
    cdef Py_ssize_t capacity
    cdef Py_ssize_t filled
    cdef const int64_t[::1] log_job_id
    cdef const seconds_t[::1] submit_time
    cdef const processors_t[::1] processors
    cdef const seconds_t[::1] requested_time
    cdef const seconds_t[::1] run_time
    cdef const int32_t[::1] user
    cdef const seconds_t[::1] start_time
    cdef const seconds_t[::1] end_time
    cdef const int16_t[::1] submitted_to
    cdef const int16_t[::1] executed_on

    def __cinit__(self, sink, list names, const int64_t[::1] sizes, columns):
        cdef Py_ssize_t rows = len(columns["log_job_id"])
        self.sink = sink
        self.names = names
        self.rows = rows
        self.log_job_id = columns["log_job_id"]
        self.submit_time = columns["submit_time"]
        self.processors = columns["processors"]
        self.requested_time = columns["requested_time"]
        self.run_time = columns["run_time"]
        self.user = columns["user"]
        self.start_time = columns["start_time"]
        self.end_time = columns["end_time"]
        self.submitted_to = columns["submitted_to"]
        self.executed_on = columns["executed_on"]
        self.allocations = <Allocation**> calloc(max(rows, 1), sizeof(Allocation*))
        self.capacity = BUFFER_BYTES + FIXED_BYTES_MAX
        self.buffer = <char*> malloc(self.capacity)
        self.maps = <ProcessorMap*> calloc(max(sizes.shape[0], 1), sizeof(ProcessorMap))
        if self.allocations == NULL or self.buffer == NULL or self.maps == NULL:
            raise MemoryError(f"no memory to write {rows} rows")
        # All processors of all machines are free and numbered one machine after the other.
        cdef Py_ssize_t index
        cdef int64_t first_number = 0
        for index in range(sizes.shape[0]):
            map_open(&self.maps[index], sizes[index], first_number)
            self.machines += 1
            first_number += sizes[index]

    def __dealloc__(self):
        cdef Py_ssize_t index
        for index in range(self.running):
            let_go(self.heap[index].allocation)
        if self.allocations != NULL:
            for index in range(self.rows):
                if self.allocations[index] != NULL:
                    let_go(self.allocations[index])
        for index in range(self.machines):
            free(self.maps[index].busy)
        free(self.maps)
        free(self.heap)
        free(self.allocations)
        free(self.scratch.interval)
        free(self.buffer)

    cdef int start(self, job_index_t job) except -1:
        # Takes the lowest free processors of the machine.
        cdef int16_t machine = self.executed_on[job]
        cdef Py_ssize_t count = take_lowest(
            &self.maps[machine], self.processors[job], &self.scratch
        )
        cdef Py_ssize_t bytes_needed = sizeof(Allocation) + count * sizeof(Interval)
        cdef Allocation* allocation
        cdef Running entry
        cdef Py_ssize_t place, above
        if self.running == self.heap_capacity:
            self.heap_capacity = self.heap_capacity * 2 if self.heap_capacity else 256
            self.heap = <Running*> safe_realloc(
                self.heap, self.heap_capacity, sizeof(Running), b"running jobs"
            )
        allocation = <Allocation*> safe_realloc(
            NULL, bytes_needed, 1, b"bytes of an allocation"
        )
        allocation.count = count
        allocation.holders = 2
        allocation.intervals = <Interval*> (allocation + 1)
        memcpy(allocation.intervals, self.scratch.interval, count * sizeof(Interval))
        self.allocations[job] = allocation
        entry = Running(self.end_time[job], job, machine, allocation)
        place = self.running
        self.running += 1
        while place > 0:
            above = (place - 1) >> 1
            if not ends_before(&entry, &self.heap[above]):
                break
            self.heap[place] = self.heap[above]
            place = above
        self.heap[place] = entry
        return 0

    cdef void end_first(self) noexcept nogil:
        # Gives back the processors of the running job that ends first.
        cdef Running entry = self.heap[0]
        cdef ProcessorMap* machine = &self.maps[entry.machine]
        cdef Py_ssize_t place = 0
        cdef Py_ssize_t below
        give_back(machine, entry.allocation.intervals, entry.allocation.count)
        let_go(entry.allocation)
        self.running -= 1
        entry = self.heap[self.running]
        while True:
            below = 2 * place + 1
            if below >= self.running:
                break
            if below + 1 < self.running and ends_before(
                &self.heap[below + 1], &self.heap[below]
            ):
                below += 1
            if not ends_before(&self.heap[below], &entry):
                break
            self.heap[place] = self.heap[below]
            place = below
        self.heap[place] = entry

    cdef int make_room(self, Allocation* allocation, Py_ssize_t name_bytes) except -1:
        # Room for one row.
        cdef Py_ssize_t needed = (
            FIXED_BYTES_MAX + name_bytes + 2 * NUMBER_BYTES_MAX * allocation.count
        )
        if self.filled + needed > self.capacity:
            self.capacity = self.filled + needed + BUFFER_BYTES
            self.buffer = <char*> safe_realloc(
                self.buffer, self.capacity, 1, b"bytes of a buffer"
            )
        return 0

    cdef int flush(self) except -1:
        if self.filled:
            self.sink(PyBytes_FromStringAndSize(self.buffer, self.filled))
            self.filled = 0
        PyErr_CheckSignals()
        return 0

    cdef int put_row(self, Py_ssize_t row) except -1:
        # One line; docs/schedule-format.md says what stands in each column.
        cdef Allocation* allocation = self.allocations[row]
        cdef bytes own = <bytes> self.names[self.submitted_to[row]]
        cdef bytes host = <bytes> self.names[self.executed_on[row]]
        cdef const char* own_text = PyBytes_AS_STRING(own)
        cdef Py_ssize_t own_length = PyBytes_GET_SIZE(own)
        cdef seconds_t submit = self.submit_time[row]
        cdef seconds_t run_time = self.run_time[row]
        cdef seconds_t response = self.end_time[row] - submit
        cdef char* at
        self.make_room(allocation, 2 * own_length + PyBytes_GET_SIZE(host))
        at = put_whole(self.buffer + self.filled, self.log_job_id[row])
        at = put_text(at, b",")
        at = put_bytes(at, own_text, own_length)
        at = put_text(at, b",delay,")
        at = put_text(put_real(at, submit), b",")
        at = put_text(put_whole(at, self.processors[row]), b",")
        at = put_real(at, self.requested_time[row])
        if run_time < self.requested_time[row]:
            at = put_text(at, b",1,COMPLETED_SUCCESSFULLY,")
        else:
            at = put_text(at, b",0,COMPLETED_WALLTIME_REACHED,")
        at = put_text(put_real(at, self.start_time[row]), b",")
        at = put_text(put_real(at, run_time), b",")
        at = put_text(put_real(at, self.end_time[row]), b",")
        at = put_text(put_real(at, self.start_time[row] - submit), b",")
        at = put_text(put_real(at, response), b",")
        at = put_text(put_real(at, response / run_time), b",")
        at = put_intervals(at, allocation, self.maps[self.executed_on[row]].first_number)
        at = put_text(at, b",-1,,")
        at = put_bytes(at, own_text, own_length)
        at = put_text(at, b",")
        at = put_bytes(at, PyBytes_AS_STRING(host), PyBytes_GET_SIZE(host))
        at = put_text(at, b",")
        at = put_text(put_whole(at, self.user[row]), b"\n")
        self.filled = at - self.buffer
        let_go(allocation)
        self.allocations[row] = NULL
        return 0

    cdef int run(self, const int64_t[::1] order, progress) except -1:
        # Goes through the starts in their order and writes every row whose turn has come.
        cdef Py_ssize_t step
        cdef Py_ssize_t row = 0
        cdef Py_ssize_t job
        cdef ProcessorMap* machine
        for step in range(order.shape[0]):
            job = order[step]
            machine = &self.maps[self.executed_on[job]]
            while self.running and self.heap[0].end_time <= self.start_time[job]:
                self.end_first()
            if self.processors[job] > machine.processors_free:
                raise ValueError(
                    f"job {self.log_job_id[job]} starts at {self.start_time[job]} s on "
                    f"{self.processors[job]} processors of "
                    f"{self.names[self.executed_on[job]].decode()}, which then has "
                    f"{machine.processors_free} free of {machine.processors}"
                )
            self.start(<job_index_t> job)
            while row < self.rows and self.allocations[row] != NULL:
                self.put_row(row)
                row += 1
                if self.filled >= BUFFER_BYTES:
                    self.flush()
                    if progress is not None:
                        progress(row)
        self.flush()
        if progress is not None:
            progress(row)
        return 0


def write_rows(
    sink,
    list names not None,
    const int64_t[::1] sizes not None,
    const int64_t[::1] order not None,
    columns not None,
    progress=None,
):
    """Passes the lines of a schedule, without the header, to `sink`, in pieces of about 1 MiB.

    Times must be finite, machine indices valid and `order` a permutation;
    lrms_sim.workload.schedule_files checks this.

    Args:
        sink: called with bytes.
        names: the K machines' names, as bytes ready for a CSV field.
        sizes: the machines' processors, shape (K,).
        order: the rows in order of start, shape (n,).
        columns: arrays of shape (n,) by name: log_job_id, submit_time, processors,
            requested_time, run_time, user, start_time, end_time, submitted_to, executed_on.
        progress: called now and then with the number of rows written so far.

    Raises:
        ValueError: the jobs of a machine need more processors at one time than it has, or the
            columns differ in length.
    """
    for name, column in columns.items():
        if column.shape != (order.shape[0],):
            raise ValueError(f"{name} has shape {column.shape}, order has {order.shape[0]} rows")
    cdef RowWriter writer = RowWriter(sink, names, sizes, columns)
    writer.run(order, progress)
