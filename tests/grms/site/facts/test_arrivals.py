"""Jobs that are received and kept, by records and by the fields of records alone."""

from collections.abc import Callable

from grms.site.core.state import SiteState
from grms.site.facts.arrivals import keep, receive
from grms.site.facts.codec import encode, form_of
from grms.site.facts.lifecycle import JobState
from grms.site.facts.memory import Memory
from grms.site.facts.records import JobDeclined, JobKept, JobOffered, JobReceived
from grms.testing.trial import Trial
from tests.grms.site.conversation import REQUEST, settings
from tests.grms.site.facts.test_compaction import inside

PLAIN: dict[str, Callable[..., None]] = {"JobReceived": receive, "JobKept": keep}


def test_a_job_is_what_was_received_and_kept() -> None:
    """Each thing by its name, whoever looks it up, and how many there are."""
    memory = Memory(settings())
    memory.apply(JobReceived(1.5, 3, "ann", "key", "fluid", REQUEST, b"run"))
    job = memory.jobs[3]
    assert (job.job, job.job_id, job.lrms_key) == (3, "a-3", "a/7/3")
    assert (job.user, job.idempotency_key, job.name) == ("ann", "key", "fluid")
    assert (job.request, job.payload, job.submit_time) == (REQUEST, b"run", 1.5)
    assert (memory.jobs_open, memory.open_by_user, memory.next_job) == (1, {"ann": 1}, 4)
    assert memory.keys == {("ann", "key"): 3}
    memory.apply(JobKept(2.5, 3))
    assert (job.state, job.kept_time) == (JobState.SUBMITTING, 2.5)
    assert (memory.unconfirmed, memory.at_lrms) == (REQUEST.processors, {"a/7/3": job})


def test_questions_count_until_the_job_is_kept() -> None:
    """The next decision about it, should there be one, may ask as many partners as any."""
    memory = Memory(settings())
    memory.apply(JobReceived(1.0, 1, "ann", "key", "", REQUEST, b"run"))
    memory.apply(JobOffered(1.0, 1, "b", 1))
    memory.apply(JobDeclined(1.0, 1))
    assert memory.jobs[1].put == 1
    memory.apply(JobKept(1.0, 1))
    assert (memory.jobs[1].put, memory.jobs[1].asked) == (0, ("b",))


def test_fields_do_what_records_do() -> None:
    """Whatever has happened at sites that crash: the memory is the same to the last bit."""
    plain = 0
    for seed in range(8):
        trial = Trial(seed, SiteState)
        trial.run()
        for site in trial.sites.values():
            one, other = Memory(site.settings), Memory(site.settings)
            for record in site.journal:
                one.apply(record)
                row = encode(record)
                take = PLAIN.get(row.kind)
                if take is None:
                    other.apply(record)
                else:
                    plain += 1
                    take(other, row.time, *form_of(row.kind).values(row.body, row.payload))
            assert inside(one) == inside(other)
    assert plain > 100
