import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.util.files import to_toml
from lrms_sim.util.messages import shown
from scenarios.spec import files as spec_files
from scenarios.spec.files import cross_problems, load_spec, parse_spec
from scenarios.spec.spec import SITES_MAX, LublinWorkload
from scenarios.util.errors import SpecError

GOOD = """
name = "two"
[[sites]]
name = "A"
processors = 8
workload = { model = "lublin", jobs = 3 }
"""


def test_a_file_becomes_a_scenario(tmp_path: Path) -> None:
    """TOML is read as UTF-8, paths count from the file."""
    path = tmp_path / "two.toml"
    text = GOOD.replace("jobs = 3 }", 'jobs = 3 }\ntransfer = { default = "r.json" }')
    path.write_text(f"{text}# Größe\n", encoding="utf-8")
    made = load_spec(path)
    assert made.name == "two"
    assert isinstance(made.sites[0].workload, LublinWorkload)
    assert made.sites[0].transfer.default == str(tmp_path / "r.json")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"name = ", r"no TOML: .*line 1|no TOML: .*end of document"),
        (b"name = 'a'\nname = 'b'\nseed = 1", r"no TOML: .*line 2"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"\x1f\x8b\x08\x00", r"no TOML|not UTF-8"),
        (b"a = " + b"[" * 100_000, r"nested too deeply|no TOML"),
    ],
)
def test_what_is_no_toml_is_said(tmp_path: Path, content: bytes, text: str) -> None:
    """The text names file and place."""
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=text) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """Missing files and folders give the system's reason."""
    with pytest.raises(SpecError, match=r"none.toml: cannot be read: No such file"):
        load_spec(tmp_path / "none.toml")
    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        load_spec(tmp_path)


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the limit is read."""
    monkeypatch.setattr(spec_files, "FILE_BYTES_MAX", 10)
    path = tmp_path / "huge.toml"
    path.write_text(GOOD)
    with pytest.raises(SpecError, match="is larger than 10 bytes"):
        load_spec(path)


def test_errors_use_the_name_they_are_given(tmp_path: Path) -> None:
    """A bundled scenario is called by its name."""
    with pytest.raises(SpecError, match=r"^mine: cannot"):
        load_spec(tmp_path / "x", shown="mine")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_scenario_or_a_spec_error(content: bytes) -> None:
    """Binary rubbish never gets further than an explanation."""
    with pytest.raises(SpecError):
        parse_spec(content, folder=Path("/"), shown="f")


def test_the_example_of_the_documentation_is_a_scenario() -> None:
    """What the page shows first can be copied."""
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    made = parse_spec(example.encode(), folder=Path("/towns"), shown="page")
    assert [site.name for site in made.sites] == ["Wismar", "Luebeck"]
    assert made.sites[1].transfer.partners["Wismar"] == "/towns/rules/luebeck-for-wismar.json"


SITE = {"processors": 8, "workload": {"model": "lublin", "jobs": 1}}


def said(document: dict[str, Any] | str) -> list[str]:
    """Returns what is said of a scenario, without the file's name."""
    text = document if isinstance(document, str) else to_toml(document)
    try:
        parse_spec(text.encode(), folder=Path("/s"), shown="f")
    except SpecError as error:
        return [line.removeprefix("f: ") for line in str(error).split("\n")]
    return []


def with_sites(*sites: dict[str, Any]) -> dict[str, Any]:
    """Returns a scenario whose sites have these keys beside the needed ones."""
    return {"name": "x", "sites": [SITE | site for site in sites]}


ONE_BY_ONE = [
    ({"sites": [SITE | {"name": "A"}]}, "name: is missing"),
    ({"name": "x"}, "sites: is missing"),
    (
        {"name": "x", "sites": []},
        "sites: is []; it must be a list of one table or more, each begun with [[sites]]",
    ),
    (
        "name = 'x'\n[sites]\nname = 'A'",
        (
            "sites: is {'name': 'A'}; it must be a list of one table or more, each begun with "
            "[[sites]]"
        ),
    ),
    (
        with_sites({"name": "A"}) | {"name": "Big"},
        "name: is 'Big'; it must be 1 to 64 of a to z, digits, and -, the first a letter or a digit",
    ),
    (
        with_sites({"name": "A"}) | {"seed": -1},
        "seed: is -1; it must be at least 0",
    ),
    (
        with_sites({"name": "A"}) | {"titel": "x"},
        (
            "titel: 'titel' is no key here, did you mean 'title'? "
            "there are: name, title, description, seed, clock, first_arrivals, sites, broker, electricity"
        ),
    ),
    (
        with_sites({"name": "A"}) | {"title": "x" * 201},
        f"title: is '{'x' * 56}...; it must be a text of at most 200 characters",
    ),
    (
        with_sites({"name": "A"}) | {"clock": {"time_zero": "logs"}},
        "clock.time_zero: is 'logs'; it must be 'log', 'window' or 'first_job'",
    ),
    (with_sites({"name": "A"}) | {"clock": 3}, "clock: is 3; it must be a table"),
    (
        with_sites({"name": "A", "transfer": "awf"}),
        "sites.A.transfer: is 'awf'; it must be a table, as { default = \"fair-exchange\" }",
    ),
    (
        with_sites({"name": "A", "disciplin": "easy"}),
        (
            "sites.A.disciplin: 'disciplin' is no key here, did you mean 'discipline'? "
            "there are: name, processors, discipline, strategy, group_order, time_zone, location, partners_asked, "
            "workload, transfer, rails, reoffer, reservable, rogue, electricity"
        ),
    ),
    (
        with_sites({"name": "A", "discipline": "EASYY"}),
        (
            "sites.A.discipline: 'EASYY' is no discipline, did you mean 'easy'? "
            "there are: fcfs, list, easy, easy-per-event, conservative, fcfs-group, easy-group, "
            "conservative-group, sjf, saf, ljf, wfp3, f1, f2, f3, f4, easy-sjbf, easy-saf, "
            "easy-sjbf-per-event, easy-plus-plus"
        ),
    ),
    (
        with_sites({"name": "A", "processors": 1.5}),
        "sites.A.processors: is 1.5; it must be a whole number",
    ),
    (
        with_sites({"name": "A", "workload": {"trace": "khth"}}),
        (
            "sites.A.workload.trace: 'khth' is no log, did you mean 'kth'? "
            "there are: kth, ctc, sdsc05, sdsc00"
        ),
    ),
    (
        with_sites({"name": "A", "workload": {"trce": "kth"}}),
        "sites.A.workload: needs one of trace, swf, model; it has 'trce', did you mean 'trace'?",
    ),
    (with_sites({"name": "A", "workload": {}}), "sites.A.workload: needs one of trace, swf, model"),
    (
        with_sites({"name": "A", "workload": {"trace": "kth", "swf": "x"}}),
        "sites.A.workload: has trace and swf; it needs exactly one of them",
    ),
    (with_sites({"name": "A", "workload": 1}), "sites.A.workload: is 1; it must be a table"),
    (
        with_sites({"name": "A", "workload": {"model": "feitelson", "jobs": 1}}),
        "sites.A.workload.model: 'feitelson' is no model; there are: lublin",
    ),
    (
        with_sites({"name": "A", "workload": {"model": "lublin"}}),
        "sites.A.workload: one of jobs and days is needed; found neither",
    ),
    (
        with_sites({"name": "A", "workload": {"trace": "kth", "window": {"firstday": 1}}}),
        (
            "sites.A.workload.window.firstday: 'firstday' is no key here, did you mean 'first_day'? "
            "there are: first_day, last_day, first_jobs"
        ),
    ),
    (
        with_sites({"name": "A", "workload": {"trace": "kth", "window": {"first_day": -1}}}),
        "sites.A.workload.window.first_day: is -1; it must be at least 0",
    ),
    (
        with_sites({"name": "A", "workload": {"swf": "x", "preparation": {"overrun": "stop"}}}),
        "sites.A.workload.preparation.overrun: is 'stop'; it must be 'kill' or 'extend'",
    ),
    (
        with_sites({"name": "A", "transfer": {"default": "afw"}}),
        (
            "sites.A.transfer.default: 'afw' is no transfer policy, did you mean 'awf'? "
            "there are: awf, keep, start-now, short-guests, fair-exchange, strict-exchange, none, and the path of a rule base file (*.json)"
        ),
    ),
    (
        with_sites({"name": "A", "transfer": {"pool": [{"processors": 1, "policy": "x"}]}}),
        (
            "sites.A.transfer.pool[0].policy: 'x' is no transfer policy; "
            "there are: awf, keep, start-now, short-guests, fair-exchange, strict-exchange, and the path of a rule base file (*.json)"
        ),
    ),
    (
        with_sites({"name": "A", "transfer": {"default": "awf", "pool": [SITE["workload"]]}}),
        "sites.A.transfer.pool[0].processors: is missing",
    ),
    (
        with_sites({"name": "A", "discipline": {"strategy": "x.txt"}}),
        "sites.A.strategy: 'x.txt' is no strategy file; the path of one (*.json) is expected",
    ),
    (
        with_sites({"name": "A", "discipline": {"time_zone": "Nowhere"}}),
        (
            "sites.A.time_zone: time zone 'Nowhere' is not known; a name of the IANA database is expected, "
            "such as 'Europe/Stockholm', or an offset from UTC in seconds or as '+01:00'"
        ),
    ),
    (
        with_sites({"name": "A", "discipline": {"time_zone": 0}, "time_zone": 0}),
        "sites.A: has time_zone and discipline.time_zone; one of them is enough",
    ),
    (
        with_sites({"name": "A", "discipline": "easy", "group_order": [1, 2, 3, 4, 5]}),
        "sites.A: group_order goes with a discipline by group, such as easy-group",
    ),
    (
        with_sites({"name": "A", "location": "B"}, {"name": "B"}),
        "sites.A.location: 'B' is no location policy; there are: awrt, awrt-completed, awrt-open, and a list of all partners",
    ),
    (
        with_sites({"name": "A", "location": [1]}, {"name": "B"}),
        "sites.A.location: is [1]; it must be 'awrt', 'awrt-completed', 'awrt-open' or a list of all partners' names",
    ),
    (
        with_sites({"name": "A"}, {"name": "A"}),
        "sites[1].name: 'A' is the name of sites[0] too; names must be unique",
    ),
    (
        with_sites({"name": "pool"}),
        "sites.pool.name: is 'pool', which is a key of [sites.transfer]; choose another name",
    ),
    (
        with_sites({"name": "KTH", "transfer": {"CCT": "awf"}}, {"name": "CTC"}),
        (
            "sites.KTH.transfer.CCT: 'CCT' is no partner, did you mean 'CTC'? "
            "there are: CTC, default, pool"
        ),
    ),
    (
        with_sites({"name": "A", "transfer": {"A": "awf"}}),
        "sites.A.transfer.A: a site has no transfer policy for itself",
    ),
    (
        with_sites({"name": "A", "location": ["B"]}, {"name": "B"}, {"name": "C"}),
        "sites.A.location: lacks C; an order names every partner, or is 'awrt'",
    ),
    (
        with_sites({"name": "A", "location": ["B", "B"]}, {"name": "B"}),
        "sites.A.location[1]: 'B' stands in the order twice",
    ),
    (
        with_sites({"name": "A", "location": ["A", "B"]}, {"name": "B"}),
        "sites.A.location[0]: 'A' is the site itself; only partners are asked",
    ),
    (
        with_sites({"name": "A", "location": ["B", "c"]}, {"name": "B"}),
        "sites.A.location[1]: 'c' is no partner; there are: B",
    ),
]


@pytest.mark.parametrize(("document", "text"), ONE_BY_ONE)
def test_every_mistake_is_said_with_key_value_and_what_is_allowed(
    document: dict[str, Any] | str, text: str
) -> None:
    """One mistake is among what is said, in exactly these words, and said once."""
    assert said(document).count(text) == 1


def test_mistakes_of_every_kind_are_said_together() -> None:
    """What one key shows and what only several show come in one go."""
    document = with_sites(
        {"name": "A", "processors": 0, "discipline": "x"},
        {"name": "A", "transfer": {"Z": "awf"}},
    )
    keys = [line.split(": ")[0] for line in said(document)]
    assert keys == ["sites[0].processors", "sites[0].discipline", "sites[1].name",
                    "sites[1].transfer.Z"]  # fmt: skip


def test_a_partner_with_whom_nothing_is_exchanged_needs_no_place_in_the_order() -> None:
    """`none` for the partner, or for all that are not named, frees an order from it."""
    for transfer in ({"C": "none"}, {"B": "awf", "default": "none"}):
        first = {"name": "A", "location": ["B"], "transfer": transfer}
        assert said(with_sites(first, {"name": "B"}, {"name": "C"})) == []


def test_a_partner_may_be_called_location() -> None:
    """Words of the format are ordinary names where they are no keys."""
    wrong = with_sites({"name": "A", "transfer": {"location": 3}}, {"name": "location"})
    assert said(wrong) == ["sites.A.transfer.location: is 3; it must be a text in quotes"]


def test_too_many_sites_are_refused_quickly() -> None:
    """A thousand sites are a limit, not a wait."""
    sites = "[[sites]]\nname='A'\n" * (SITES_MAX + 1)
    text = f"sites: is {shown([{'name': 'A'}] * 9)}; it must be a list of at most 1000 entries"
    assert text in said(f"name = 'x'\n{sites}")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "sites",
                    "workload",
                    "transfer",
                    "location",
                    "default",
                    "pool",
                    "trace",
                    "A",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JUNK)
def test_no_document_is_too_odd_for_the_checks_between_keys(document: object) -> None:
    """Wrong types are somebody else's problem, never a crash."""
    assert all(problem.key for problem in cross_problems(document))


@given(st.dictionaries(st.sampled_from(["name", "sites", "seed", "clock", "A"]), JUNK, max_size=4))
def test_any_toml_is_a_scenario_or_a_spec_error(document: dict[str, Any]) -> None:
    """Whatever TOML can say is either accepted or explained, line by line."""
    try:
        text = to_toml(document)
    except (TypeError, ValueError):
        return
    assert tomllib.loads(text) is not None
    assert all(line and not line.startswith(":") for line in said(text))
