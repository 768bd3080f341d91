"""Jobs that are received and kept, by records and by the fields of records alone."""

from grms.site.core.state import SiteState
from grms.site.facts.arrivals import PLAIN
from grms.site.facts.codec import encode, form_of
from grms.site.facts.memory import Memory
from grms.testing.trial import Trial
from tests.grms.site.facts.test_compaction import inside


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
