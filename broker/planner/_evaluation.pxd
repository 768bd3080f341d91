# From a schedule to its worth.
from libc.stdint cimport int32_t

from broker.planner._scratch cimport Scratch, Strategy
from broker.planner._types cimport money_t, seconds_t, task_t

cdef enum:
    TIME           # completion of the workflows
    COST           # of the workflows
    DELAY          # start of the tasks that others wait for: the auxiliary objective
    MAKESPAN
    UTILIZATION
    CRITERIA

cdef extern from *:
    """
    /* As in broker.model.plan: rounding in sums must not make a limit missed. */
    #define hanse_time_tolerance 1e-6
    #define hanse_cost_tolerance 1e-9
    """
    const double TIME_TOLERANCE "hanse_time_tolerance"
    const double COST_TOLERANCE "hanse_cost_tolerance"

cdef struct Goals:
    double weight[5]
    int32_t priority[5]         # 0 is the highest class
    double threshold[5]         # what a criterion has to reach for the next class to count
    int32_t priorities          # classes
    double first_offender       # factor for one offending workflow
    double offenders_third      # share of offenders at which that has fallen to a third
    double tardiness_third      # relative tardiness at which the factor is a third
    double over_budget_third    # relative excess at which the factor is a third
    double stability            # share of the fitness that moving every task costs
    # Bounds (equation 2.5): by workflow, then of the plan.
    const seconds_t* time_min
    const seconds_t* time_max
    const money_t* cost_min
    const money_t* cost_max
    double delay_min
    double delay_max
    double makespan_min
    double makespan_max
    # Limits that some plan can keep, by workflow; infinite if none can, or there is none.
    const seconds_t* due
    const money_t* budget
    # Limits that no plan can keep: the weight of missing them beyond what is possible (0 for the
    # other workflows), what is possible, and what was allowed.
    bint lost                   # whether there are any
    const double* lost_time
    const seconds_t* earliest_end
    const seconds_t* allowed_time
    const double* lost_money
    const money_t* least_spent
    const money_t* allowed_money
    # Scale of tardiness and excess; and the units of all resources.
    double time_scale
    double cost_scale
    double capacity

cdef struct Worth:
    double fitness              # 0 to 100,000; less than 0 where tasks have no place
    double raw                  # before penalties
    double criterion[5]         # 1 is best; may leave 0 to 1 where bounds are left
    int32_t unplanned           # tasks
    int32_t moved               # tasks that leave the resources of the old plan
    int32_t late                # workflows
    int32_t over_budget         # workflows
    double tardiness            # of all workflows
    double excess               # cost over budget of all workflows
    # The same for limits that can be kept, which is penalized.
    int32_t missed_dates
    int32_t missed_budgets
    double avoidable_tardiness
    double avoidable_excess
    # Weighted miss beyond what is possible, for limits that cannot be kept: 0 to less than 1.
    double lost_time
    double lost_money
    double makespan
    double utilization
    double cost
    double completion           # mean over workflows
    double delay

cdef class CompiledGoals:
    cdef Goals goals
    cdef object kept

cdef void worth_fast(
    const Scratch* scratch, const Goals* goals, Worth* worth
) noexcept nogil
