"""Compiled disciplines: strategies on any order of the queue, and rules that choose among them."""

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

from lrms_sim.kernel._choice cimport CLASSES, FEATURES, Choice, Features, History, choose
from lrms_sim.kernel._criteria cimport GROUPS, Criterion, Priority
from lrms_sim.kernel._keyed cimport KEY_KINDS, KEY_USER, KeyKind
from lrms_sim.kernel._lines cimport Lines
from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._ordered cimport (
    ALGORITHM_CONSERVATIVE,
    ALGORITHM_EASY,
    ORDER_CRITERION,
    ORDER_GROUP,
    ORDER_KEY,
    Algorithm,
    Alternative,
    OrderKind,
    waiting_pass,
)
from lrms_sim.kernel._queue cimport queue_next_fit
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, seconds_t
from lrms_sim.kernel._view cimport View
from lrms_sim.kernel._waiting cimport (
    Waiting,
    waiting_ended,
    waiting_free,
    waiting_outlived,
    waiting_submitted,
    waiting_withdrawn,
)

cdef enum:
    CRITERION_NUMBERS = 3 + 2 * GROUPS

cdef struct Notes:
    Waiting waiting
    Alternative* alternatives
    Py_ssize_t count
    bint chooses                 # else the first alternative makes every pass
    Choice choice
    History history
    int64_t* passes              # by alternative


cdef Features features_of(const Notes* notes, const View* view) noexcept nogil:
    cdef Features features
    cdef double work = 0.0
    cdef Py_ssize_t group
    features.value[0] = 1.0
    if notes.history.service > 0.0:
        features.value[0] = notes.history.response / notes.history.service
    features.value[1] = 100.0 * (view.processors - view.processors_free) / view.processors
    for group in range(GROUPS):
        work += notes.waiting.work[group]
    for group in range(GROUPS):
        features.value[2 + group] = 0.0
        if work > 0.0:
            features.value[2 + group] = 100.0 * notes.waiting.work[group] / work
    return features


cdef int strategy_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    return waiting_submitted(&(<Notes*> own).waiting, view, job)


cdef int strategy_withdrawn(void* own, View* view, job_index_t job) except -1 nogil:
    waiting_withdrawn(&(<Notes*> own).waiting, view, job)
    return 0


cdef int strategy_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    cdef seconds_t elapsed
    cdef double consumption
    waiting_ended(&notes.waiting, view, job)
    if notes.chooses:
        # Of a job that ends now the run time is no secret any more.
        elapsed = view.now - view.start_time[job]
        consumption = elapsed * view.job_processors[job]
        notes.history.response += consumption * (view.now - view.submit_time[job])
        notes.history.service += consumption * elapsed
    return 0


cdef int strategy_outlived(
    void* own, View* view, job_index_t job, seconds_t estimate
) except -1 nogil:
    return waiting_outlived(&(<Notes*> own).waiting, view, job, estimate)


cdef int strategy_decide(void* own, View* view) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    cdef Features features
    cdef Py_ssize_t chosen = 0
    if view.queue.count == 0:
        return 0
    # Where nobody fits, no order starts anybody.
    if queue_next_fit(&view.queue, view.queue.head, view.processors_free) < 0:
        return 0
    if notes.chooses:
        features = features_of(notes, view)
        chosen = choose(&notes.choice, &features)
    notes.passes[chosen] += 1
    return waiting_pass(&notes.waiting, view, &notes.alternatives[chosen])


cdef class StrategyScheduler(Scheduler):
    """Strategies on any order of the queue, chosen by rules if there are several."""

    cdef object kept              # what the notes point into

    def __cinit__(self, *_arguments, **_options):
        self.notes = safe_calloc(1, sizeof(Notes), b"notes of a scheduler")

    def __init__(
        self,
        alternatives,
        *,
        const int32_t[::1] table=None,
        double[:, ::1] rules=None,
        const double[::1] user_keys=None,
    ):
        cdef Notes* notes = <Notes*> self.notes
        cdef Py_ssize_t i
        if notes.count:
            raise ValueError("this scheduler has its alternatives already")
        if not alternatives:
            raise ValueError("a scheduler needs at least one alternative")
        self.kept = []
        notes.alternatives = <Alternative*> safe_calloc(
            len(alternatives), sizeof(Alternative), b"alternatives"
        )
        notes.passes = <int64_t*> safe_calloc(len(alternatives), sizeof(int64_t), b"counts")
        notes.count = len(alternatives)
        notes.waiting.lines = <Lines*> safe_calloc(notes.count, sizeof(Lines), b"lines")
        if user_keys is not None and user_keys.shape[0] > 0:
            notes.waiting.keyed[<int> KEY_USER].user_key = &user_keys[0]
            notes.waiting.keyed[<int> KEY_USER].users = user_keys.shape[0]
            self.kept.append(user_keys)
            self.needs_users = True
        for i in range(notes.count):
            self._compile(&notes.alternatives[i], alternatives[i])
        notes.choice.alternatives = notes.count
        if table is not None:
            self._compile_table(table)
        elif rules is not None:
            self._compile_rules(rules)
        elif notes.count > 1:
            raise ValueError(f"{notes.count} alternatives need a table or rules to choose by")
        if notes.chooses:
            notes.waiting.by_work = True
            self.needs_groups = True
        if (
            notes.waiting.by_lane or notes.waiting.by_work or notes.waiting.by_key
            or notes.waiting.lines_count
        ):
            self.ops.submitted = strategy_submitted
            self.ops.withdrawn = strategy_withdrawn
        if notes.waiting.by_release or notes.chooses:
            self.ops.ended = strategy_ended
        self.outlives = True
        self.ops.outlived = strategy_outlived
        self.ops.decide = strategy_decide

    cdef int _compile(self, Alternative* alternative, words) except -1:
        cdef Notes* notes = <Notes*> self.notes
        cdef int algorithm = words.algorithm
        cdef int order = words.order
        cdef Py_ssize_t i
        alternative.algorithm = <Algorithm> algorithm
        alternative.order = <OrderKind> order
        alternative.backfill = <OrderKind> <int> words.backfill
        self._use_keys(alternative)
        for i in range(GROUPS):
            alternative.groups[i] = words.groups[i] - 1
        if words.needs_groups:
            self.needs_groups = True
        if order == ORDER_GROUP:
            notes.waiting.by_lane = True
        if algorithm == ALGORITHM_EASY or algorithm == ALGORITHM_CONSERVATIVE:
            notes.waiting.by_release = True
        if order == ORDER_CRITERION:
            self._compile_priority(
                &alternative.priority, words.criteria, words.switch_time, words.situation
            )
            alternative.lines = notes.waiting.lines_count
            notes.waiting.lines[alternative.lines].criterion = alternative.priority.criteria
            notes.waiting.lines[alternative.lines].aside = -1
            notes.waiting.lines_count += 1
        return 0

    cdef int _use_keys(self, const Alternative* alternative) except -1:
        cdef Waiting* waiting = &(<Notes*> self.notes).waiting
        cdef int order
        for order in (alternative.order, alternative.backfill):
            if order >= ORDER_KEY + KEY_KINDS:
                raise ValueError(f"order {order} is none that there is")
            if order == ORDER_KEY + KEY_USER and waiting.keyed[<int> KEY_USER].users == 0:
                raise ValueError("an order by users needs a key for each user")
            if order >= ORDER_KEY:
                waiting.keyed[order - ORDER_KEY].kind = <KeyKind> (order - ORDER_KEY)
                waiting.keyed[order - ORDER_KEY].used = True
                waiting.by_key = True
        return 0

    cdef int _compile_priority(
        self,
        Priority* priority,
        const double[:, ::1] criteria,
        const double[::1] switch_time,
        const int32_t[::1] situation,
    ) except -1:
        cdef Criterion* criterion
        cdef Py_ssize_t i, group
        if criteria.shape[1] != CRITERION_NUMBERS:
            raise ValueError(f"{criteria.shape[1]} numbers for a criterion of {CRITERION_NUMBERS}")
        priority.criteria = <Criterion*> safe_calloc(
            criteria.shape[0], sizeof(Criterion), b"criteria"
        )
        for i in range(criteria.shape[0]):
            criterion = &priority.criteria[i]
            criterion.kind = <int32_t> criteria[i, 0]
            for group in range(GROUPS):
                criterion.weight[group] = criteria[i, 1 + group]
                criterion.constant[group] = criteria[i, 1 + GROUPS + group]
            criterion.waiting = criteria[i, 1 + 2 * GROUPS]
            criterion.size = criteria[i, 2 + 2 * GROUPS]
        if switch_time is not None:
            for i in range(situation.shape[0]):
                if not 0 <= situation[i] < criteria.shape[0]:
                    raise ValueError(f"situation {situation[i]} has no criterion")
            priority.switch_time = &switch_time[0]
            priority.situation = &situation[0]
            priority.switches = switch_time.shape[0]
            self.kept.append((switch_time, situation))
        return 0

    cdef int _compile_table(self, const int32_t[::1] table) except -1:
        cdef Notes* notes = <Notes*> self.notes
        cdef Py_ssize_t i
        if table.shape[0] != CLASSES:
            raise ValueError(f"a table has {CLASSES} entries, not {table.shape[0]}")
        for i in range(CLASSES):
            if not 0 <= table[i] < notes.count:
                raise ValueError(f"entry {i} of the table is {table[i]}; {notes.count} are there")
        notes.choice.table = &table[0]
        notes.choice.visits = <int64_t*> safe_calloc(CLASSES, sizeof(int64_t), b"visits")
        notes.chooses = True
        self.kept.append(table)
        return 0

    cdef int _compile_rules(self, double[:, ::1] rules) except -1:
        # Rows as the value has them: 7 means, 7 deviations, the recommendations.
        cdef Notes* notes = <Notes*> self.notes
        cdef Py_ssize_t count = rules.shape[0]
        cdef Py_ssize_t stride = 2 * FEATURES + 1 + notes.count
        cdef double* packed
        cdef Py_ssize_t i, k
        if count < 1 or rules.shape[1] != stride - 1:
            raise ValueError(f"a rule has {stride - 1} numbers, not {rules.shape[1]}")
        packed = <double*> safe_calloc(count * stride, sizeof(double), b"numbers of rules")
        notes.choice.rules = packed
        notes.choice.degree = <double*> safe_calloc(count, sizeof(double), b"degrees")
        notes.choice.rule_count = count
        notes.choice.stride = stride
        for i in range(count):
            for k in range(FEATURES):
                packed[i * stride + k] = rules[i, k]
                packed[i * stride + FEATURES + k] = 1.0 / rules[i, FEATURES + k]
                packed[i * stride + 2 * FEATURES] -= log(rules[i, FEATURES + k])
            for k in range(notes.count):
                packed[i * stride + 2 * FEATURES + 1 + k] = rules[i, 2 * FEATURES + k]
        notes.chooses = True
        return 0

    def __dealloc__(self):
        cdef Notes* notes = <Notes*> self.notes
        cdef Py_ssize_t i
        if notes != NULL:
            waiting_free(&notes.waiting)
            for i in range(notes.count):
                free(notes.alternatives[i].priority.criteria)
            free(notes.alternatives)
            free(notes.passes)
            free(<void*> notes.choice.rules)
            free(notes.choice.degree)
            free(notes.choice.visits)
            free(notes)

    @property
    def passes(self):
        """How many passes each alternative has made, as a list."""
        cdef Notes* notes = <Notes*> self.notes
        cdef Py_ssize_t i
        return [notes.passes[i] for i in range(notes.count)]

    @property
    def visits(self):
        """How many passes found the machine in each of the 192 classes; `None` without a table."""
        cdef Notes* notes = <Notes*> self.notes
        cdef Py_ssize_t i
        if notes.choice.visits == NULL:
            return None
        return [notes.choice.visits[i] for i in range(CLASSES)]

    @property
    def history(self):
        """The two sums over all jobs that have ended: Σ p·m·(C - r) and Σ p·m·p."""
        cdef Notes* notes = <Notes*> self.notes
        return notes.history.response, notes.history.service

    def remember(self, double response, double service):
        """Takes over the `history` of a previous machine."""
        cdef Notes* notes = <Notes*> self.notes
        notes.history.response = response
        notes.history.service = service
