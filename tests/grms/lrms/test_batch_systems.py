"""Batch systems by the word that a configuration has for them."""

from pathlib import Path
from typing import get_args

import pytest

from grms.daemon.clock import VirtualClock
from grms.lrms.adapter import LrmsSettings, LrmsSite
from grms.lrms.base import LrmsJob
from grms.lrms.batch_systems import KINDS, adapter_of
from grms.lrms.simulated.immediate import ImmediateLrms, ReplayableLrms
from grms.lrms.simulated.simulated import ADAPTER, SimulatedSettings
from grms.site.config.load import ConfigError, parse_config
from grms.site.config.schema import SiteConfig

TEXT = b"""
name = "home"
processors = 4
listen.users = "home.sock"
journal.path = "home.journal"
[lrms]
"""


def parsed(table: bytes) -> SiteConfig:
    """Returns a configuration with this table for its batch system."""
    return parse_config(TEXT + table, folder=Path("/x"), shown="home.toml")


@pytest.mark.parametrize("kind", [*sorted(KINDS), "gridengine"])
def test_a_kind_has_its_word_and_a_description_of_every_key(kind: str) -> None:
    """The model's own `kind` takes that word and no other; each of its keys is explained."""
    settings = adapter_of(kind).settings
    assert get_args(settings.model_fields["kind"].annotation) == (kind,)
    text = "".join(cls.__doc__ or "" for cls in settings.__mro__ if issubclass(cls, LrmsSettings))
    assert [name for name in settings.model_fields if f"        {name}: " not in text] == []


def test_a_table_is_that_of_its_kind() -> None:
    """Without a kind it is a simulated one; it is kept whole."""
    lrms = parsed(b'discipline = "easy"\nload_age_s = 5.0').lrms
    assert isinstance(lrms, SimulatedSettings)
    assert (lrms.kind, lrms.discipline, lrms.load_age_s) == ("simulated", "easy", 5.0)
    dumped = parsed(b'discipline = "easy"').model_dump()["lrms"]
    assert dumped["discipline"] == "easy"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (b'kind = "lsf"', "lrms.kind: 'lsf' is no kind of batch system; there are: "),
        (b"kind = 3", "lrms.kind: 3 is no kind of batch system"),
        (b'disciplin = "fcfs"', "lrms.disciplin: 'disciplin' is no key here, did you mean "),
        (b"load_age_s = 0.0", "lrms.load_age_s: is 0.0; it must be more than 0"),
        (b'kind = "slurm"\npartitions = ["a,b"]', "lrms.partitions[0]: 'a,b' is no name"),
        (b'kind = "slurm"\nqos = "--uid=0"', "lrms.qos: '--uid=0' is no name"),
        (b'kind = "slurm"\nspool = "jobs"', "lrms.spool: 'jobs' must be a path that begins with /"),
        (b'kind = "slurm"\nshape = ["-n4"]', "must be an option of sbatch in its long form"),
        (b'kind = "slurm"\nshape = ["--ntasks=4"]', "exactly one of the options must have"),
        (b'kind = "slurm"\nshape = ["--x={a}", "--n={processors}"]', "has braces"),
        (b'kind = "slurm"\n[clock]\nkind = "scaled"\norigin = 0.0', "needs 'wall'"),
        (b"commands = 65", "lrms.commands: is 65; it must be at most 64"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(table: bytes, text: str) -> None:
    """As for every other table."""
    with pytest.raises(ConfigError) as error:
        parsed(table)
    assert text in str(error.value)


def test_no_table_is_an_error() -> None:
    """Whatever else stands there."""
    with pytest.raises(ConfigError, match="lrms: must be a table"):
        parse_config(TEXT.replace(b"[lrms]", b"lrms = 3"), folder=Path("/x"), shown="home.toml")


def test_an_adapter_makes_its_batch_system() -> None:
    """Of its settings, with the jobs that the journal knows."""
    job = LrmsJob("home/1/1", 3, 10.0)
    site = LrmsSite("home", 4, VirtualClock(2.0), Path("/x"), running=[(job, 1.0)], moment=2.0)
    lrms = ADAPTER.made(SimulatedSettings(), site)
    assert isinstance(lrms, ImmediateLrms)
    assert isinstance(lrms, ReplayableLrms)
    assert lrms.load_now().free == 1
