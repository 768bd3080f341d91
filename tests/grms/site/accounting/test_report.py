"""What exchange has brought, by a site's configuration."""

from pathlib import Path

from grms.site.accounting.report import exchange_of_site, queue_alone
from grms.site.config.schema import SiteConfig
from grms.site.runtime.journal import Journal
from lrms_sim.scheduling.disciplines import Conservative, Easy
from tests.grms.site.accounting.stories import at_home, at_partner


def settings(folder: Path, lrms: dict[str, object] | None = None) -> SiteConfig:
    """Returns the configuration of a site of 8 processors, with a batch system."""
    document = {
        "name": "home",
        "processors": 8,
        "listen": {"users": str(folder / "home.sock")},
        "journal": {"path": str(folder / "home.journal")},
        "lrms": lrms or {"kind": "simulated", "discipline": "conservative"},
    }
    return SiteConfig.model_validate(document, context={"folder": folder})


def test_the_discipline_is_that_of_the_site(tmp_path: Path) -> None:
    """Another one where it is named; EASY above a real batch system."""
    simulated = settings(tmp_path)
    assert queue_alone(simulated) == (Conservative(), "conservative")
    assert queue_alone(simulated, "easy") == (Easy(), "easy")
    real = settings(tmp_path, {"kind": "slurm", "spool": str(tmp_path)})
    assert queue_alone(real) == (Easy(), "easy")


def test_the_journal_is_the_sites(tmp_path: Path) -> None:
    """Records are counted on the way, and the window is as long as is said."""
    with Journal(tmp_path / "home.journal", "home", durability="process") as journal:
        journal.append([*at_home(1, 0.0, 0.0, 60.0, 8), *at_partner(2, 0.0, 50.0, 60.0, 8)])
    found, word = exchange_of_site(settings(tmp_path))
    assert (found.total.jobs, word) == (2, "conservative")
    assert exchange_of_site(settings(tmp_path), since=30.0)[0].total.jobs == 1
