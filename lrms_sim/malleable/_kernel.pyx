"""Machines around one queue, as one object that owns its memory; see lrms_sim.malleable.machine."""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free
from libc.string cimport memset

import numpy as np

from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._types cimport job_index_t, seconds_t
from lrms_sim.malleable._complex cimport (
    MACHINES_MAX,
    Complex,
    complex_arrive,
    complex_instant,
    complex_next_end,
    complex_pass,
    core_open,
    replay,
    value_rise,
)
from lrms_sim.malleable._core cimport STEP_SIZE, MalleableCore
from lrms_sim.malleable._orders cimport FEATURES, Ranked, Release
from lrms_sim.malleable._passes cimport Victim
from lrms_sim.malleable._value cimport RULES
from lrms_sim.malleable._view cimport NO_MACHINE, View

_LOG = np.dtype(
    [
        ("time", np.float64),
        ("job", np.int32),
        ("processors", np.int32),
        ("machine", np.int32),
        ("kind", np.int8),
    ],
    align=True,
)


_INPUTS = (
    ("submit_time", np.float64),
    ("processors", np.int32),
    ("processors_min", np.int32),
    ("requested_time", np.float64),
    ("run_time", np.float64),
    ("weight", np.float64),
    ("plateau", np.float64),
    ("zero", np.float64),
    ("floor", np.float64),
    ("shape", np.int8),
)


cdef class UtilityKernel:
    cdef Complex all
    cdef readonly Py_ssize_t jobs
    cdef readonly dict columns          # what was handed in, by name
    cdef readonly dict results          # by job, by name
    cdef object notes

    def __cinit__(self, dict columns, processors, dict options, dict policy):
        cdef Py_ssize_t number
        memset(&self.all, 0, sizeof(Complex))
        if not 1 <= len(processors) <= MACHINES_MAX:
            raise ValueError(f"{len(processors)} machines; from 1 to {MACHINES_MAX} are possible")
        self.columns = dict(columns)
        self.jobs = columns["submit_time"].shape[0]
        self.all.count = len(processors)
        self.all.now = -INFINITY
        self.all.core = <MalleableCore*> safe_calloc(
            self.all.count, sizeof(MalleableCore), b"machines"
        )
        self._set_options(options)
        self._set_policy(policy)
        for number in range(self.all.count):
            core_open(&self.all.core[number], &self.all, <job_index_t> number, processors[number])
        self._bind()
        self._make_room()

    def __dealloc__(self):
        cdef Py_ssize_t number
        for number in range(self.all.count):
            free(self.all.core[number].view.running.job)
            free(self.all.core[number].steps.value)
        free(self.all.core)
        free(self.all.waiting.job)
        free(self.all.scratch.victim)
        free(self.all.scratch.held_after)
        free(self.all.scratch.utility_after)
        free(self.all.scratch.time_after)
        free(self.all.order_scratch.ranked)
        free(self.all.order_scratch.release)
        free(self.all.log.entry)

    cdef int _set_options(self, dict options) except -1:
        self.all.options.grow = options["grow"]
        self.all.options.leave = options["leave"]
        self.all.options.worthless = options["worthless"]
        self.all.options.refit = options["refit"]
        self.all.options.step = options["step"]
        self.all.options.suspension = options["suspension"]
        self.all.options.suspension_cost = options["suspension_cost"]
        self.all.options.resize_cost = options["resize_cost"]
        self.all.options.checkpoint = options["checkpoint"]
        self.all.options.exempt = options["exempt"]
        self.all.options.suspensions_max = options["suspensions_max"]
        self.all.options.suspended_max = options["suspended_max"]
        self.all.options.speedup.law = options["law"]
        self.all.options.speedup.first = options["law_first"]
        self.all.options.speedup.second = options["law_second"]
        return 0

    cdef int _set_policy(self, dict policy) except -1:
        cdef int feature
        self.all.policy.ordered = policy["ordered"]
        self.all.policy.job_fixed = policy["job_fixed"]
        self.all.policy.passes.preemption = policy["preemption"]
        self.all.policy.passes.oversubscription = policy["oversubscription"]
        self.all.policy.order.mechanism = policy["mechanism"]
        self.all.policy.order.order = policy["order"]
        self.all.policy.order.squeezes = policy["squeezes"]
        for feature in range(FEATURES):
            self.all.policy.order.weights[feature] = policy["weights"][feature]
        return 0

    cdef int _bind(self) except -1:
        cdef Py_ssize_t count = self.jobs
        cdef Py_ssize_t number
        cdef View* view
        cdef seconds_t* run_time
        room = max(count, 1)
        doubles = ("left", "since", "resumed", "expected_end", "run_left", "true_end")
        notes = {name: np.zeros(room) for name in doubles}
        integers = ("held", "stored", "suspensions", "machine", "resizes", "ran_on")
        notes.update({name: np.zeros(room, np.int32) for name in integers})
        notes["machine"][:] = NO_MACHINE
        notes["ran_on"][:] = NO_MACHINE
        for name in ("first_start", "end"):
            notes[name] = np.full(room, np.nan)
        for name in ("utility", "busy", "extra"):
            notes[name] = np.zeros(room)
        notes["status"] = np.zeros(room, np.int8)
        self.notes = notes
        shown = (
            "first_start",
            "end",
            "utility",
            "busy",
            "extra",
            "suspensions",
            "resizes",
            "ran_on",
            "status",
        )
        self.results = {name: notes[name][:count] for name in shown}
        self.all.results.run_left = doubles_of(notes["run_left"])
        self.all.results.true_end = doubles_of(notes["true_end"])
        self.all.results.first_start = doubles_of(notes["first_start"])
        self.all.results.end = doubles_of(notes["end"])
        self.all.results.utility = doubles_of(notes["utility"])
        self.all.results.busy = doubles_of(notes["busy"])
        self.all.results.extra = doubles_of(notes["extra"])
        self.all.results.suspensions = integers_of(notes["suspensions"])
        self.all.results.resizes = integers_of(notes["resizes"])
        self.all.results.ran_on = integers_of(notes["ran_on"])
        self.all.results.status = bytes_of(notes["status"])
        inputs = {name: self._column(name, dtype) for name, dtype in _INPUTS}
        run_time = doubles_of(inputs["run_time"])
        for number in range(self.all.count):
            view = &self.all.core[number].view
            self.all.core[number].run_time = run_time
            view.columns.submit_time = doubles_of(inputs["submit_time"])
            view.columns.width = integers_of(inputs["processors"])
            view.columns.width_min = integers_of(inputs["processors_min"])
            view.columns.request = doubles_of(inputs["requested_time"])
            view.columns.weight = doubles_of(inputs["weight"])
            view.columns.plateau = doubles_of(inputs["plateau"])
            view.columns.zero = doubles_of(inputs["zero"])
            view.columns.floor = doubles_of(inputs["floor"])
            view.columns.shape = bytes_of(inputs["shape"])
            view.notes.left = doubles_of(notes["left"])
            view.notes.since = doubles_of(notes["since"])
            view.notes.resumed = doubles_of(notes["resumed"])
            view.notes.expected_end = doubles_of(notes["expected_end"])
            view.notes.held = integers_of(notes["held"])
            view.notes.stored = integers_of(notes["stored"])
            view.notes.suspensions = integers_of(notes["suspensions"])
            view.notes.machine = integers_of(notes["machine"])
        return 0

    cdef object _column(self, str name, dtype):
        column = self.columns[name]
        if column.shape != (self.jobs,) or column.dtype != dtype:
            raise ValueError(f"column {name} is {column.dtype}{column.shape}, not {dtype}")
        column = np.ascontiguousarray(column) if self.jobs else np.zeros(1, dtype)
        self.columns[name] = column
        return column

    cdef int _make_room(self) except -1:
        # A list holds at most all jobs, and a running job at least one processor.
        cdef Py_ssize_t number, place
        cdef Py_ssize_t count = self.jobs + 1
        cdef Py_ssize_t widest = 0
        cdef MalleableCore* core
        for number in range(self.all.count):
            core = &self.all.core[number]
            place = min(<Py_ssize_t> core.view.processors, self.jobs) + 1
            widest = max(widest, place)
            core.view.running.job = <job_index_t*> safe_calloc(place, sizeof(job_index_t), b"jobs")
        self.all.waiting.job = <job_index_t*> safe_calloc(count, sizeof(job_index_t), b"jobs")
        self.all.scratch.victim = <Victim*> safe_calloc(widest, sizeof(Victim), b"jobs")
        self.all.scratch.held_after = <double*> safe_calloc(widest, sizeof(double), b"jobs")
        self.all.scratch.utility_after = <double*> safe_calloc(widest, sizeof(double), b"jobs")
        self.all.scratch.time_after = <seconds_t*> safe_calloc(widest, sizeof(seconds_t), b"jobs")
        self.all.order_scratch.ranked = <Ranked*> safe_calloc(
            count + widest, sizeof(Ranked), b"jobs"
        )
        self.all.order_scratch.release = <Release*> safe_calloc(widest, sizeof(Release), b"jobs")
        return 0

    def keep(self, *, bint log, bint steps):
        cdef Py_ssize_t number
        self.all.log.kept = log
        for number in range(self.all.count):
            self.all.core[number].steps.kept = steps

    def set_value(self, Py_ssize_t number, p, dict scales, dict learning):
        cdef MalleableCore* core = self._core(number)
        cdef int rule
        for rule in range(RULES):
            core.learner.p[rule] = p[rule]
        core.learner.scales.utility = scales["utility"]
        core.learner.scales.time = scales["time"]
        core.learner.scales.processors = scales["processors"]
        core.learner.learning = bool(learning)
        if learning:
            core.learner.constant = learning["constant"]
            core.learner.rate = learning["rate"]
            core.learner.delay = learning["delay"]
            core.learner.per_step = learning["per_step"]
            core.learner.time_unit = learning["time_unit"]
            core.learner.rho = learning["rho"]
            core.learner.updates = learning["updates"]

    cdef MalleableCore* _core(self, Py_ssize_t number) except NULL:
        if not 0 <= number < self.all.count:
            raise IndexError(f"machine {number} of {self.all.count}")
        return &self.all.core[number]

    def run(self, double until, Py_ssize_t rows):
        if isnan(until) or not 0 <= rows <= self.jobs:
            raise ValueError(f"until is {until} and rows {rows} of {self.jobs}")
        with nogil:
            replay(&self.all, until, rows, self.jobs)
        return self.all.row

    def settle(self, double now):
        cdef Py_ssize_t number, place
        cdef MalleableCore* core
        cdef job_index_t job
        cdef double held
        for number in range(self.all.count):
            core = &self.all.core[number]
            for place in range(core.view.running.count):
                job = core.view.running.job[place]
                held = core.view.notes.held[job] * (now - core.view.notes.since[job])
                core.busy += held
                core.results.busy[job] += held

    def advance(self, double until):
        cdef seconds_t next_end
        if not until >= self.all.now:
            raise ValueError(f"the clock is at {self.all.now}, past {until}")
        with nogil:
            while True:
                next_end = complex_next_end(&self.all)
                if next_end >= until:
                    break
                complex_instant(&self.all, next_end)
                complex_pass(&self.all)

    def reach(self, double now):
        cdef long events
        self.advance(now)  # what ended before has had its pass there
        events = self.all.events
        complex_instant(&self.all, now)
        return self.all.events > events

    def arrive(self, Py_ssize_t job):
        if not 0 <= job < self.jobs:
            raise IndexError(f"job {job} of {self.jobs}")
        if self.all.results.status[job] != 0:
            raise ValueError(f"job {job} has been submitted already")
        complex_arrive(&self.all, <job_index_t> job)

    def make_pass(self):
        complex_pass(&self.all)

    def rises_by(self, Py_ssize_t number, Py_ssize_t job):
        cdef MalleableCore* core = self._core(number)
        if not 0 <= job < self.jobs:
            raise IndexError(f"job {job} of {self.jobs}")
        return value_rise(&self.all, core, <job_index_t> job)

    def figures(self, Py_ssize_t number):
        cdef MalleableCore* core = self._core(number)
        return {
            "busy": core.busy,
            "utility": core.utility,
            "completed": core.completed,
            "suspensions": core.suspensions,
            "resizes": core.resizes,
            "processors_free": core.view.processors_free,
        }

    def learned(self, Py_ssize_t number):
        cdef MalleableCore* core = self._core(number)
        return {
            "p": tuple([core.learner.p[rule] for rule in range(RULES)]),
            "rho": core.learner.rho,
            "updates": core.learner.updates,
        }

    def steps(self, Py_ssize_t number):
        cdef MalleableCore* core = self._core(number)
        cdef Py_ssize_t count = core.steps.count * STEP_SIZE
        if count == 0:
            return np.zeros((0, STEP_SIZE))
        return np.array(<double[:count]> core.steps.value).reshape(-1, STEP_SIZE)

    def log(self):
        cdef Py_ssize_t count = self.all.log.count * sizeof(self.all.log.entry[0])
        if _LOG.itemsize != sizeof(self.all.log.entry[0]):
            raise AssertionError("the log's layout is not that of its description")
        if count == 0:
            return np.zeros(0, _LOG)
        return np.frombuffer(bytes(<char[:count]> <char*> self.all.log.entry), _LOG)

    @property
    def now(self):
        return self.all.now

    @property
    def events(self):
        return self.all.events


cdef seconds_t* doubles_of(object array) except NULL:
    cdef const double[::1] view = array
    return <seconds_t*> &view[0]


cdef int32_t* integers_of(object array) except NULL:
    cdef const int32_t[::1] view = array
    return <int32_t*> &view[0]


cdef int8_t* bytes_of(object array) except NULL:
    cdef const int8_t[::1] view = array
    return <int8_t*> &view[0]
