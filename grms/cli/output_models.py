"""What the commands of `grms` show, as models: `--json` prints by them, and they give the schemas.

Moments are seconds on the site's clock.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, RootModel, create_model

from grms.client import ArrayCounts, Job, JobPhase, Outcome, SentHome
from lrms_sim.cli.output_models import OutputModel, Percent, fields_of

_Job: Any = create_model("_Job", __base__=OutputModel, **fields_of(Job, nan=False))


class JobOutput(_Job):
    """A job as its site shows it."""

    executed_on: str = Field(description="The site that has it or has run it; empty while open.")
    outcome: Outcome | None = Field(description="null before the end.")
    reason: str = Field(description="Why it stands where it stands, for a person.")
    stuck: str = Field(description="Why it does not go on by itself; empty where it does.")
    offered_to: str = Field(
        description="The partner that is asked to hold a place for it while it is queued; else empty."
    )
    leaving: bool = Field(
        description="That partner holds one; the batch system is told to let the job go."
    )

    array_id: str = Field(description="The array of which it is an element; empty for none.")
    array_index: int | None = Field(description="In that array; null for none.")
    dependencies: Sequence[str] = Field(description="What it waits, or has waited for.")
    array: ArrayCounts | None = Field(description="How the array is; null of a job.")
    phase: JobPhase | None = Field(
        description="Where it stands in the batch system that has it, here or as its partner says; null if unknown."
    )
    since_s: float | None = Field(
        description="Since when it is in its state and phase; null if unknown."
    )
    told_time_s: float | None = Field(
        description="When its partner has last said where it stands; null for never."
    )
    cost: float | None = Field(
        description="Processor seconds used, so far if it runs; null before its start."
    )
    account: str = Field(description="That pays for it, as its user named it; empty for none.")
    sites: tuple[str, ...] = Field(description="That may run it; empty for any.")
    sent_home: Sequence[SentHome] = Field(
        description="Partners that have ended it for other jobs, how often, and how long it had run there."
    )
    place: str = Field(
        description="What place it keeps in the queue here while a partner has it that may send it home, or has had again; "
        "empty for nothing to say."
    )


class CircuitBreakerStatusOutput(OutputModel):
    """What the site's circuit breaker does, and what it has found when it looked last."""

    stops: bool = Field(description="Exchange stands still, or it has not looked yet.")
    stopped_since_s: float | None = Field(
        description="First of the looks in a row that stopped it; null while exchange goes on."
    )
    looked_s: float | None = Field(description="null before the first look.")
    jobs: int = Field(description="Own users' jobs in its window.")
    jobs_min: int = Field(description="With fewer jobs exchange goes on.")
    improvement_percent: float | None = Field(description="Of their AWRT alone.")
    cost: float = Field(description="Part of AWRT alone that exchange may cost own users.")


class SiteOutput(OutputModel):
    """How a site is."""

    site: str
    version: str
    now_s: float
    clock: str
    up_time_s: float
    draining: bool
    lrms_reachable: bool
    processors: int
    processors_free: int
    processors_waiting: int
    jobs: dict[str, int] = Field(description="Own users' jobs by name of their state.")
    guest_jobs: dict[str, int]
    journal_records: int
    journal_bytes: int
    telemetry_connected: bool
    lrms_problem: str
    lrms_load_age_s: float | None
    lrms_commands_open: int
    circuit_breaker: CircuitBreakerStatusOutput | None = Field(
        description="null of a site without one."
    )
    clock_ahead_s: float | None = Field(
        description="So far the site's time is ahead of its clock; null where it is not."
    )


class StatusOutput(RootModel[JobOutput | SiteOutput]):
    """`grms status`: a job where one is named, else the site."""


class GuestOwnerOutput(OutputModel):
    """A user of a partner's, with open jobs here."""

    pseudonym: str = Field(description="Empty where the partner has not said.")
    jobs: Sequence[str] = Field(description="As the batch system names them; at most 100.")


class MonthStandingOutput(OutputModel):
    """What was used in a month, or may be; processor seconds, weighted as `usage.weights` says."""

    month: str = Field(description="Of UTC.")
    used: float = Field(description="By jobs that have ended in it.")
    open: float = Field(description="By jobs that have not ended, at most.")
    limit: float | None = Field(description="null for none.")


class GuestOutput(OutputModel):
    """A partner's job here."""

    key: str = Field(description="As the batch system names it after its prefix.")
    partner: str
    pseudonym: str = Field(description="Of its user; empty where the partner has not said.")
    state: str = Field(
        description="waiting, running, suspended, completing; place if only one is held; reported once it has ended."
    )
    processors: int
    memory_mib: int
    gpus: int
    requested_time_s: float
    accept_time_s: float
    start_time_s: float | None
    since_s: float = Field(description="Since when it is in its state.")
    cost: float | None = Field(description="What it has used so far; null before its start.")
    reason: str = Field(description="Why it waits, where that is not for room.")


class GuestUserOutput(OutputModel):
    """A user of a partner's, this month."""

    partner: str
    pseudonym: str
    month: MonthStandingOutput


class GuestsOutput(OutputModel):
    """`grms guests`: partners' jobs here, and what their users have used this month."""

    guests: Sequence[GuestOutput]
    users: Sequence[GuestUserOutput]
    now_s: float


class PartnerOutput(OutputModel):
    """What a site knows of a partner."""

    name: str
    endpoint: str
    processors: int = Field(description="0 before it has been described.")
    reachable: bool
    lost: bool
    last_heard_s: float | None
    offered: int
    accepted: int
    ended: int
    open: int
    awrt_s: float
    guest_offered: int
    guest_accepted: int
    guest_open: int
    problem: str
    faulty: bool
    faults: int
    incompatible: int
    disbelieved: int
    distrust: int
    disputed: int
    unused_acceptances: int = Field(
        description="Accepted offers that it took back within an hour before their jobs began."
    )
    declined_for_unused: int = Field(description="Offers declined because these were too many.")
    taken: float = Field(description="Work of its jobs here, processor seconds.")
    given: float = Field(description="Work that it has done for this site, processor seconds.")
    credit: float = Field(description="Requests of jobs done as promised, processor seconds.")
    breaches: int = Field(description="Promises that it has broken.")
    overdue: int
    suspended_until_s: float | None
    guest_owners: Sequence[GuestOwnerOutput] = Field(description="Whose jobs of it are open here.")
    taken_month: MonthStandingOutput = Field(description="What its jobs use here this month.")
    given_month: MonthStandingOutput = Field(description="What own users' jobs use there.")
    declined_limited: int = Field(
        description="Offers declined as the month's limit was used up, since the daemon's start."
    )
    way: str = Field(description="How it is called: address, proxy, callback or relay.")
    tunnels: int = Field(
        description="Connections that it keeps open to be called, or this site for it."
    )


class PilotOutput(OutputModel):
    """A job of the site whose processors run programs in reservations."""

    resource_id: str = Field(description="Behind which it stands.")
    state: Literal["asked", "open", "draining", "over"]
    job_id: str = Field(description="Empty before it has one.")
    processors: int
    host: str = Field(description="Its node; empty before it was there.")
    connected: bool
    programs: int = Field(description="That it has now.")
    asked_time_s: float
    open_time_s: float | None
    until_s: float | None = Field(description="It takes programs that end by then.")
    over_time_s: float | None
    reason: str = Field(description="Why it drains, or is over.")
    held: float = Field(description="By its job so far, processor seconds.")
    used: float = Field(description="By programs in it so far, processor seconds.")


class PilotsOutput(OutputModel):
    """`grms pilots`: the jobs whose processors run programs in reservations, and their use."""

    pilots: Sequence[PilotOutput]
    held: float = Field(description="By all pilots that are over, processor seconds.")
    used: float = Field(description="By programs in them, processor seconds.")


class PartnersOutput(OutputModel):
    """`grms partners`: what the site knows of each."""

    partners: Sequence[PartnerOutput]


class ComparedOutput(OutputModel):
    """Own users' jobs, with exchange as it was and alone; null of no jobs."""

    jobs: int
    work: float = Field(description="Their processors times run time, processor seconds.")
    mean_wait_s: float | None = Field(validation_alias="mean_wait")
    mean_wait_alone_s: float | None = Field(validation_alias="mean_wait_alone")
    awrt_s: float | None = Field(validation_alias="awrt")
    awrt_alone_s: float | None = Field(validation_alias="awrt_alone")
    improvement_percent: Percent = Field(
        validation_alias="improvement", description="Of AWRT; positive is better than alone."
    )


class PlaceOutput(ComparedOutput):
    """The same of those that ran at one place."""

    place: str = Field(description="A partner; empty at home.")


class TradedOutput(OutputModel):
    """What went to a partner and came from it."""

    name: str = Field(validation_alias="partner")
    given: int = Field(description="Own users' jobs that it ran.")
    given_work: float = Field(description="Their processors times run time, processor seconds.")
    taken: int = Field(description="Its jobs that ran here.")
    taken_work: float


class CircuitBreakerOutput(OutputModel):
    """What the site's circuit breaker says by its journal."""

    cost: float = Field(description="Part of AWRT alone that exchange may cost own users.")
    window_s: float
    jobs_min: int = Field(description="With fewer jobs exchange goes on.")
    since_s: float | None = Field(description="Only jobs that ended later count.")
    jobs: int = Field(description="Own jobs of the window.")
    improvement_percent: float | None = Field(description="Of their AWRT.")
    stops: bool = Field(description="Exchange stands still.")


class AccountPointOutput(OutputModel):
    """The account at the looks of two hours."""

    time_s: float = Field(description="Of the last of these looks.")
    looks: int
    in_credit: int = Field(description="Looks after which the site was in credit.")
    late: int = Field(
        description="Looks at which an own job waited that would have begun by then without exchange."
    )
    balance_hours: float | None = Field(description="After the last one, as in the account.")
    protected: int = Field(description="Guests at the last one; so are the next two.")
    preemptible: int
    staying: int


class AccountOutput(OutputModel):
    """The account that a site keeps of itself, at its last look.

    Work is in processor seconds since it began. Amounts in hours are of waiting of an own job of mean work, fading;
    null while none was compared.
    """

    in_credit: bool
    since_s: float | None = Field(description="When it has turned last; null if it never has.")
    turns: int = Field(description="How often it has turned.")
    began_s: float | None
    last_look_s: float | None
    guests: str = Field(
        description="`preempt`: they may be sent home; `run`: they run to their ends."
    )
    compared: float = Field(description="Number of own jobs that it has compared, fading.")
    gain_percent: float | None = Field(
        description="By so much own jobs have taken less time than alone, weighted by work, fading."
    )
    waiting_gain_percent: float | None = Field(description="By so much they have waited less.")
    brought_hours: float | None = Field(
        description="What exchange has brought; negative if it has cost."
    )
    saved_hours: float | None = Field(
        description="What of that is saved, and what exchange may cost beyond."
    )
    owed_hours: float | None = Field(description="What own jobs that wait have lost.")
    balance_hours: float | None = Field(description="Saved and not owed; negative out of credit.")
    turned_saved_hours: float | None = Field(description="Saved when it has turned last.")
    turned_owed_hours: float | None = Field(description="Owed then.")
    waiting: int = Field(description="Own jobs that wait at home.")
    protected: int = Field(description="Guests that run and are not ended for own jobs now.")
    preemptible: int = Field(description="Guests that run and are.")
    staying: int = Field(description="Guests that run to their ends.")
    lent: float = Field(description="By guests that have run here to their ends.")
    lent_lost: float = Field(description="By guests that were sent home.")
    given: float = Field(description="By own jobs that have run at partners to their ends.")
    given_lost: float = Field(description="By own jobs that partners have sent home.")
    guests_sent_home: int
    sent_home: int = Field(description="How often own jobs were.")
    sentence: str = Field(description="What was measured of own users, for a director.")
    history: Sequence[AccountPointOutput] = Field(
        description="The last 30 days, oldest first; none while nobody looked."
    )


class ExchangeOutput(OutputModel):
    """`grms exchange`: what exchange has brought own users, of jobs that ended in the window."""

    site: str
    processors: int
    discipline: str = Field(description="Of the machine alone.")
    begin_s: float | None = Field(
        validation_alias="begin", description="Of the window; null of a journal without jobs."
    )
    end_s: float | None = Field(validation_alias="end")
    total: ComparedOutput
    places: Sequence[PlaceOutput]
    partners: Sequence[TradedOutput]
    open: int = Field(description="Own jobs that have not ended; not compared, as the next three.")
    never_ran: int
    disbelieved: int = Field(description="Own jobs of which a partner's report cannot be true.")
    too_wide: int = Field(description="Own jobs that the site's own machine is too small for.")
    home_awrt_replayed_s: float | None = Field(
        validation_alias="home_awrt_replayed",
        description="Of own jobs at home where what ran there is replayed: how well that is done.",
    )
    known_since_s: float | None = Field(
        validation_alias="known_since", description="All own jobs' ends since then are known."
    )
    guests_known_since_s: float | None = Field(
        validation_alias="guests_known_since", description="Same, of partners' jobs."
    )
    circuit_breaker: CircuitBreakerOutput | None = Field(description="Null of a site without one.")
    account: AccountOutput | None = Field(
        description="That the site keeps of itself, by its journal; null of one without strict-exchange."
    )


class AdvisedOutput(OutputModel):
    """What a policy would bring own users."""

    policy: str = Field(
        description="A word; `alone`, `as it was` and `now` are no policies' words."
    )
    mean_wait_s: float | None = Field(validation_alias="mean_wait")
    awrt_s: float | None = Field(validation_alias="awrt")
    improvement_percent: Percent = Field(
        validation_alias="improvement", description="Of AWRT over being alone."
    )
    low_percent: Percent = Field(
        validation_alias="low", description="Of its 95 % interval; null of one day."
    )
    high_percent: Percent = Field(validation_alias="high")
    given: int = Field(description="Own jobs of the window that partners run.")
    taken: int = Field(description="Partners' jobs that run here; of the whole journal.")
    jobs: int = Field(description="Own jobs of the window.")


class AdviceOutput(OutputModel):
    """`grms advise`: own users' jobs under other transfer policies."""

    site: str
    seed: int
    policies: Sequence[AdvisedOutput]
    recommendation: str = Field(
        description="Whether strict-exchange is recommended, and why; empty where it was not among the policies."
    )


class UsageOutput(OutputModel):
    """`grms usage`: what one job has used; docs/how-to/accounting.md explains every field."""

    record_id: str = Field(description="Unique among all sites.")
    global_job_id: str = Field(
        description="The same in the records of the home and of the site that ran the job."
    )
    number: int = Field(description="Among the records of its home at one site: 1, 2, 3, …")
    recorded_by: str = Field(description="The site whose record it is.")
    recorded_time: datetime
    month: str = Field(description="Of UTC, in which the job ended.")
    home: str
    site: str = Field(description="That ran it; empty if none did.")
    job_id: str
    job_name: str
    user: str = Field(description="Of the home; a partner's by pseudonym; empty if unknown.")
    account: str
    partition: str
    processors: int
    memory_mib: int
    gpus: int
    submit_time: datetime = Field(description="Or when it was accepted from a partner.")
    start_time: datetime | None = Field(description="null if it has not run.")
    end_time: datetime
    requested_time_s: float
    run_time_s: float
    processor_s: float = Field(description="Processors times run time.")
    memory_mib_s: float
    gpu_s: float
    cost: float = Field(description="The weighted sum of these.")
    outcome: Outcome
    exit_code: int | None
    signal: int | None


class PkiCertificateOutput(OutputModel):
    """A certificate in a file, or a request for one, which has neither an issuer nor dates."""

    file: str
    is_request: bool
    name: str
    site: str | None
    hosts: Sequence[str]
    issuer: str | None
    begin: datetime | None
    end: datetime | None
    days_left: float | None
    is_authority: bool
    fingerprint: str | None = Field(description="SHA-256 of the certificate.")
    key_fingerprint: str = Field(description="SHA-256 of its key.")
    is_signature_valid: bool | None = Field(description="Of a request; else null.")


class PkiCertificatesOutput(OutputModel):
    """`grms pki show`: what files hold."""

    certificates: Sequence[PkiCertificateOutput]


class FindingOutput(OutputModel):
    """What was found of one thing that a site needs of its batch system."""

    level: str = Field(description="As in the table: ok, or what is wrong with it.")
    what: str
    text: str
    cure: str = Field(description="What to do; empty where nothing is to be done.")


class ValidatedOutput(OutputModel):
    """`grms validate`: what a valid configuration says."""

    file: str
    site: str
    processors: int
    lrms: str = Field(description="The kind of its batch system.")
    partners: Sequence[str]
    ways: Mapping[str, str] = Field(description="How each is called, and calls back, in words.")


class CheckOutput(OutputModel):
    """`grms lrms check`: whether everything is there; no findings of a simulated one."""

    kind: str
    job_run: bool
    findings: Sequence[FindingOutput]


class FileLinesOutput(OutputModel):
    """Lines that an operator adds to a file."""

    file: str
    what: str = Field(description="Where in the file, or what for.")
    lines: Sequence[str]
    then: str = Field(description="What makes them count; empty where more follows for the file.")


class PreemptionOutput(OutputModel):
    """`grms lrms preemption`: what has to be added so that the batch system ends guests for own jobs."""

    kind: str
    files: Sequence[FileLinesOutput] = Field(description="None if no lines would do it.")


class JudgedOutput(OutputModel):
    """A policy on the jobs of a log; figures by objective, null where there is none."""

    name: str
    value: float | None = Field(description="Of the objective; smaller is better.")
    gain_percent: float | None = Field(description="Over EASY.")
    objectives: dict[str, float | None]
    gains_percent: dict[str, float | None]


class TunedLogOutput(OutputModel):
    """What was learned beside the constants, on the jobs tuned on and on jobs never seen."""

    name: str
    training: Sequence[JudgedOutput]
    unseen: Sequence[JudgedOutput] = ()


class TuningOutput(OutputModel):
    """`grms tune`: all figures; docs/tuning.md explains them."""

    format: int
    policy: str
    value: float | None
    easy_value: float | None
    evaluations: int
    elapsed_s: float
    generations: int
    found_in_generation: int
    stopped: str
    warnings: Sequence[str]
    workloads: Sequence[TunedLogOutput]
    provenance: dict[str, Any] = Field(description="Every option and seed.")
    slurm: dict[str, Any] = Field(
        default_factory=dict, description="Settings; only where --slurm asks for them."
    )
