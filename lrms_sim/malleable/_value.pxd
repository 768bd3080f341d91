# The value of a machine's state, and how it is learned: numbers in, numbers out.
#
# Source: Vengerov, "A reinforcement learning framework for utility-based scheduling in
# resource-constrained systems", sections 3.2 to 3.4.
from lrms_sim.kernel._types cimport processors_t, seconds_t

cdef enum:
    RULES = 8
    # Of a rule's number: the inputs that it wants large.
    X1_LARGE = 4
    X2_LARGE = 2
    X3_LARGE = 1

cdef struct State:
    double x1                # mean unit utility of the running jobs, by processors
    seconds_t x2             # least expected time to a completion
    double x3                # free processors

cdef struct Scales:
    # What counts as wholly large.
    double utility
    seconds_t time
    processors_t processors

cdef struct Learner:
    Scales scales
    double p[RULES]
    bint learning            # off: p is frozen
    bint constant            # the rate is `rate` at each update, else rate / (delay + t), at most 1
    double rate
    double delay
    bint per_step            # the average reward is one of time, not of updates
    seconds_t time_unit      # the time for which `rho` stands, if so
    double rho
    long updates
    bint stored              # there is a state from before
    bint pending             # an action was considered, and none was taken
    double phi[RULES]        # of the state from before
    seconds_t stored_at
    double reward            # utility completed since then
    double delta             # of the last update; for those who look on


cdef inline double clipped(double value) noexcept nogil:
    return 0.0 if value < 0.0 else 1.0 if value > 1.0 else value


cdef inline void memberships(const Scales* scales, State state, double* phi) noexcept nogil:
    # The weights of the rules SSS … LLL; they sum to 1.
    cdef double l1 = clipped(state.x1 / scales.utility)
    cdef double l2 = clipped(state.x2 / scales.time)
    cdef double l3 = clipped(state.x3 / scales.processors)
    cdef double s1 = 1.0 - l1
    cdef double s2 = 1.0 - l2
    cdef double s3 = 1.0 - l3
    phi[0] = s1 * s2 * s3
    phi[1] = s1 * s2 * l3
    phi[2] = s1 * l2 * s3
    phi[3] = s1 * l2 * l3
    phi[4] = l1 * s2 * s3
    phi[5] = l1 * s2 * l3
    phi[6] = l1 * l2 * s3
    phi[7] = l1 * l2 * l3


cdef inline double weighted(const double* p, const double* phi) noexcept nogil:
    cdef double value = 0.0
    cdef int rule
    for rule in range(RULES):
        value += p[rule] * phi[rule]
    return value


cdef inline double value_of(const Learner* learner, State state) noexcept nogil:
    # Equation 1, with weights that sum to 1.
    cdef double phi[RULES]
    memberships(&learner.scales, state, phi)
    return weighted(learner.p, phi)


cdef inline bint learn(Learner* learner, State state, seconds_t now) noexcept nogil:
    # Equation 6, last line, and equation 5. The first state is only stored. Says whether p changed.
    cdef double phi[RULES]
    cdef double alpha, error
    cdef int rule
    cdef bint updated = learner.stored
    memberships(&learner.scales, state, phi)
    if learner.stored:
        learner.updates += 1
        alpha = learner.rate
        if not learner.constant:
            alpha = learner.rate / (learner.delay + learner.updates)
        if alpha > 1.0:
            alpha = 1.0
        if learner.per_step:
            error = (
                learner.reward
                - learner.rho * ((now - learner.stored_at) / learner.time_unit)
            )
            learner.delta = error + weighted(learner.p, phi) - weighted(learner.p, learner.phi)
            learner.rho += alpha * error
        else:
            learner.delta = (
                learner.reward - learner.rho
                + weighted(learner.p, phi) - weighted(learner.p, learner.phi)
            )
            learner.rho = (1.0 - alpha) * learner.rho + alpha * learner.reward
        for rule in range(RULES):
            learner.p[rule] += alpha * learner.delta * learner.phi[rule]
    for rule in range(RULES):
        learner.phi[rule] = phi[rule]
    learner.stored = True
    learner.stored_at = now
    learner.reward = 0.0
    return updated
