"""What names of partners mean here."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given

from grms.site.model.translation import NO_TRANSLATION, NoMeaningError, Translation
from lrms_sim.workload.requests import Gpus, Request
from tests.any_requests import any_requests

TABLES = Translation(
    partitions={"batch": "std,long", "gpu": "acc", "north:batch": "guests", "*": ""},
    accounts={"proj": "g123", "north:*": "g-north"},
    qos={"long": ""},
    features={"skylake": "cascade", "icelake": "cascade"},
    gpus={"v100": "a100"},
    licences={"matlab": "ml@server", "idl": ""},
    images={"docker://debian:12": "/images/debian-12"},
    modules={"*": "*", "gcc/12": "GCC/12.3.0"},
)
NAMED = Request(
    partition="gpu",
    account="proj",
    qos="long",
    features=("skylake", "icelake"),
    gpus=Gpus(2, "node", "v100"),
    licences=(("matlab", 2), ("idl", 1)),
    image="docker://debian:12",
    modules=("gcc/12", "openmpi"),
)


def test_every_name_becomes_that_of_this_site() -> None:
    """Two names may mean the same; an empty one is left to the site's own settings."""
    assert TABLES.local("south", NAMED) == Request(
        partition="acc",
        account="g123",
        features=("cascade",),
        gpus=Gpus(2, "node", "a100"),
        licences=(("ml@server", 2),),
        image="/images/debian-12",
        modules=("GCC/12.3.0", "openmpi"),
    )


def test_a_guarded_feature_is_had_only_by_name() -> None:
    """Not because all names mean the same here; a table may say that this one does, or another one."""
    asks, guarded = Request(features=("vip",)), frozenset(["vip"])
    for tables in (NO_TRANSLATION, Translation(features={"north:*": "*", "skylake": "*"})):
        with pytest.raises(NoMeaningError, match=r"^feature vip of north has no meaning here$"):
            tables.local("north", asks, guarded)
    assert NO_TRANSLATION.local("north", Request(features=("fast",)), guarded).features == ("fast",)
    for table in ({"vip": "*"}, {"north:vip": "*"}, {"vip": "vip"}, {"*": "vip"}):
        assert Translation(features=table).local("north", asks, guarded).features == ("vip",)


@pytest.mark.parametrize(
    ("partner", "partition", "account", "expected"),
    [
        ("south", "batch", "proj", ("std,long", "g123")),
        ("north", "batch", "proj", ("guests", "g123")),
        ("north", "gpu", "other", ("acc", "g-north")),
        ("north", "gpu,batch", "", ("acc,guests", "")),
        ("south", "other", "proj", ("", "g123")),
        ("south", "other,gpu", "proj", ("", "g123")),  # the site's choice is among them
    ],
)
def test_the_most_exact_entry_counts(
    partner: str, partition: str, account: str, expected: tuple[str, str]
) -> None:
    """A name of one partner, then the name, then all of one partner, then all."""
    found = TABLES.local(partner, Request(partition=partition, account=account))
    assert (found.partition, found.account) == expected


def test_no_partner_can_write_what_is_for_another() -> None:
    """A name with a colon is looked for under the partner that has sent it, or under that of all."""
    tables = Translation(
        accounts={"north:gold": "vip", "*:a:b": "plain"},
        images={"docker://debian:12": "d", "north:docker://debian:12": "n", "north:i:1": "i"},
    )
    for request in (
        Request(account="north:gold"),
        Request(image="north:docker://debian:12"),
        Request(image="north:i:1"),
    ):
        with pytest.raises(NoMeaningError):
            tables.local("south", request)
    assert tables.local("north", Request(account="gold")).account == "vip"
    assert tables.local("south", Request(account="a:b")).account == "plain"
    assert tables.local("north", Request(image="docker://debian:12")).image == "n"
    assert tables.local("south", Request(image="docker://debian:12")).image == "d"


def test_licences_that_mean_the_same_add_up() -> None:
    """The batch system is asked for all of them."""
    tables = Translation(licences={"*": "ml"})
    assert tables.local("south", Request(licences=(("a", 1), ("b", 2)))).licences == (("ml", 3),)


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("account other of south", Request(account="other")),
        ("QOS other", Request(qos="other")),
        ("feature other", Request(features=("skylake", "other"))),
        ("gpu other", Request(gpus=Gpus(1, "job", "other"))),
        ("licence other", Request(licences=(("other", 1),))),
        ("image other", Request(image="other")),
    ],
)
def test_what_has_no_entry_has_no_meaning(words: str, request_: Request) -> None:
    """The text says which, for the operator."""
    with pytest.raises(NoMeaningError, match=f"{words}.* has no meaning here"):
        TABLES.local("south", request_)


def test_without_tables_only_agreed_names_pass() -> None:
    """Features and types of GPUs, which are looked for under their own names."""
    agreed = Request(tasks=2, features=("avx512",), gpus=Gpus(1, "task", "a100"))
    assert NO_TRANSLATION.local("south", agreed) == agreed
    for named in (
        Request(partition="main"),
        Request(partition="main,other"),
        Request(account="a"),
        Request(qos="q"),
        Request(modules=("m",)),
        Request(image="i"),
        Request(licences=(("l", 1),)),
    ):
        with pytest.raises(NoMeaningError):
            NO_TRANSLATION.local("south", named)


@given(request=any_requests())
def test_numbers_stay_as_they_are(request: Request) -> None:
    """Whatever is named, the job has the size that it asks for."""
    everything = {"*": "*"}
    tables = Translation(**dict.fromkeys(Translation.__dataclass_fields__, everything))
    found = tables.local("south", request)
    assert (found.tasks, found.processors, found.memory) == (
        request.tasks,
        request.processors,
        request.memory,
    )
    assert found.partition == ",".join(dict.fromkeys(request.partition.split(",")))
    assert found.account == request.account


@pytest.mark.parametrize(
    ("table", "word", "asks", "gets"),
    [
        ("partitions", "partition", {"partition": "x"}, {"partition": "here"}),
        ("accounts", "account", {"account": "x"}, {"account": "here"}),
        ("qos", "QOS", {"qos": "x"}, {"qos": "here"}),
        ("features", "feature", {"features": ("x",)}, {"features": ("here",)}),
        ("gpus", "gpu", {"gpus": Gpus(1, "node", "x")}, {"gpus": Gpus(1, "node", "here")}),
        ("licences", "licence", {"licences": (("x", 2),)}, {"licences": (("here", 2),)}),
        ("images", "image", {"image": "x"}, {"image": "here"}),
        ("modules", "module", {"modules": ("x",)}, {"modules": ("here",)}),
    ],
)
def test_each_kind_of_name_has_a_table_of_its_own_and_each_partner_its_names(
    table: str, word: str, asks: dict[str, Any], gets: dict[str, Any]
) -> None:
    """What stands in no table of that kind for that partner has no meaning."""
    kinds = (field.name for field in fields(Translation))
    others = {kind: {"x": "of another kind"} for kind in kinds}
    tables = Translation(**{**others, table: {"north:x": "here", "south:y": "there"}})
    assert tables.local("north", Request(**asks)) == Request(**gets)
    with pytest.raises(NoMeaningError, match=f"^{word} x of south has no meaning here$"):
        tables.local("south", Request(**asks))
