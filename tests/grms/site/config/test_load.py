"""Configuration files, and what their errors say."""

import math
from pathlib import Path

import pytest

from grms.policy.constraints import AccountRules, ExchangeConstraints, Promise, rounds_said
from grms.policy.files import save_rule_base
from grms.policy.location import AwrtLocation, FixedOrder
from grms.policy.rebalancing import Rebalancing
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import (
    AcceptWhenFit,
    AlwaysAgree,
    AlwaysKeep,
    Constrained,
    Gaussian,
    Rule,
    RuleBase,
    rails_of,
)
from grms.site.config.load import (
    FILE_BYTES_MAX,
    ConfigError,
    load_config,
    load_policies,
    location_policy,
    parse_config,
    place_held,
    shadow_of,
    translation_of,
)
from grms.site.config.schema import SiteConfig
from grms.site.model.translation import NO_TRANSLATION
from lrms_sim.scheduling.disciplines import Easy, ListScheduling

GOOD = """
name = "kth"
processors = 100
[listen]
users = "kth.sock"
[journal]
path = "kth.journal"
[[partners]]
name = "ctc"
address = "127.0.0.1:7001"
[[partners]]
name = "sdsc"
address = "127.0.0.1:7002"
transfer = "keep"
[[partners]]
name = "lanl"
address = "127.0.0.1:7003"
transfer = "none"
"""


def errors(text: str) -> list[str]:
    """Returns what is wrong with a file's content."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text.encode(), folder=Path("/etc"), shown="site.toml")
    return str(caught.value).splitlines()


def test_a_good_file_is_read(tmp_path: Path) -> None:
    """Policies come by partner; one with whom nothing is exchanged has none."""
    path = tmp_path / "site.toml"
    path.write_text(GOOD)
    config = load_config(path)
    policies = load_policies(config, str(path))
    assert {name: policy.name for name, policy in policies.items()} == {
        "ctc": "awf",
        "sdsc": "keep",
    }


def test_constraints_are_around_every_policy() -> None:
    """A partner without a policy gets what they allow; a word for constraints keeps its own."""
    text = GOOD + (
        '[[partners]]\nname = "blue"\naddress = "127.0.0.1:7004"\ntransfer = "start-now"\n'
    )
    head = 'rails = { rules = "fair-exchange", trust = "2h" }\n'
    config = parse_config((head + text).encode(), folder=Path("/etc"), shown="x")
    policies = load_policies(config, "x")
    rails = ExchangeConstraints(promise=Promise(trust=7200))
    assert policies == {
        "ctc": Constrained(rails, AlwaysAgree(), "agree within constraints"),
        "sdsc": Constrained(rails, AlwaysKeep(), "keep within constraints"),
        "blue": TRANSFER_POLICIES["start-now"],
    }
    config = parse_config(('rails = "none"\n' + text).encode(), folder=Path("/etc"), shown="x")
    assert load_policies(config, "x")["ctc"] == AcceptWhenFit()


def test_rules_that_need_constraints_are_refused_without_them(tmp_path: Path) -> None:
    """With the partner's key; within constraints they are what they are."""
    near = Gaussian(0, 1)
    file = tmp_path / "learned.json"
    save_rule_base(RuleBase((Rule(near, near, accept=True, requested_time=near),), "mine"), file)
    text = GOOD.replace('transfer = "keep"', f'transfer = "{file}"')
    config = parse_config(text.encode(), folder=tmp_path, shown="x")
    with pytest.raises(
        ConfigError, match=r"x: partners\.sdsc\.transfer: .* requested_time.*constraints"
    ):
        load_policies(config, "x")
    constrained = parse_config(
        ('rails = "start-now"\n' + text).encode(), folder=tmp_path, shown="x"
    )
    assert load_policies(constrained, "x")["sdsc"].name == "mine within constraints"
    save_rule_base(RuleBase((Rule(near, near, accept=True, starts_now=near),), "mine"), file)
    head = 'rails = { rules = "none", balance = "1d" }\n'
    unasked = parse_config((head + text).encode(), folder=tmp_path, shown="x")
    with pytest.raises(
        ConfigError, match=r"partners\.sdsc\.transfer: .* constraints without start-now"
    ):
        load_policies(unasked, "x")


def test_what_is_wrong_with_constraints_is_said_with_its_key() -> None:
    """As of any other table."""
    assert errors('rails = "fair"\n' + GOOD)[0].startswith(
        "site.toml: rails: 'fair' is no word for constraints; there are: start-now"
    )
    (line,) = errors("rails = { balanse = 3 }\n" + GOOD)
    assert line.startswith(
        "site.toml: rails.balanse: 'balanse' is no key here, did you mean 'balance'?"
    )
    (line,) = errors('rails = { trust = "4 hours" }\n' + GOOD)
    assert line.startswith("site.toml: rails.trust: '4 hours' is no span of time")


@pytest.mark.parametrize(
    ("said", "rounds"),
    [
        ('"15min"', 900.0),
        ("60", 60.0),
        ('{ every = "1h" }', Rebalancing(3600.0)),
        (
            '{ every = 60, order = "widest", questions = 3, pause = "1d" }',
            Rebalancing(60.0, "widest", 3, 86400.0),
        ),
    ],
)
def test_rounds_are_said_as_in_a_scenario(said: str, rounds: object) -> None:
    """A period, or a table; none where nothing is said."""
    config = parse_config(f"reoffer = {said}\n{GOOD}".encode(), folder=Path("/etc"), shown="x")
    assert rounds_said(config.reoffer) == rounds
    config = parse_config(GOOD.encode(), folder=Path("/etc"), shown="x")
    assert rounds_said(config.reoffer) is None


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("0.5", "reoffer: "),
        ('"often"', "reoffer: 'often' is no span of time"),
        ("true", "reoffer: "),
        ("{ }", "reoffer.every: is missing"),
        ('{ evry = "1h" }', "reoffer.evry: 'evry' is no key here, did you mean 'every'?"),
        ('{ every = "1h", order = "narrowest" }', "reoffer.order: "),
        ('{ every = "1h", pause = "1min" }', "reoffer.pause: 60 s is too short"),
        ('{ every = "1h", questions = 0 }', "reoffer.questions: is 0; "),
    ],
)
def test_what_is_wrong_with_rounds_is_said_with_its_key(said: str, text: str) -> None:
    """As of any other table."""
    said_of_it = errors(f"reoffer = {said}\n{GOOD}")
    assert any(line.startswith(f"site.toml: {text}") for line in said_of_it), said_of_it


def test_names_of_partners_have_their_meaning_in_the_file() -> None:
    """In tables by what they name; without one only agreed features and types of GPUs pass."""
    text = f"""{GOOD}
[[nodes]]
nodes = 4
cores = 8
memory_mib = 16_000
[guests.translate.partitions]
batch = "std,long"
"north:*" = ""
"north:short" = "*"
[guests.translate.modules]
"*" = "*"
"""
    config = parse_config(text.encode(), folder=Path("/etc"), shown="x")
    found = translation_of(config)
    assert found.partitions == {"batch": "std,long", "north:*": "", "north:short": "*"}
    assert config.guests.translate.partitions_here == ["std", "long", "short"]
    assert (found.modules, found.features, found.accounts) == ({"*": "*"}, {"*": "*"}, {})
    assert [(one.nodes, one.gpus) for one in config.nodes] == [(4, 0)]
    plain = parse_config(GOOD.encode(), folder=Path("/etc"), shown="x")
    assert translation_of(plain) == NO_TRANSLATION
    assert plain.nodes == []


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('[guests.translate.accounts]\na = "-b"', "guests.translate.accounts.a: '-b' is no name"),
        ('[guests.translate.accounts]\na = "b,c"', "guests.translate.accounts.a: 'b,c' is no name"),
        (
            '[guests.translate.partitions]\na = "b,"',
            "guests.translate.partitions.a: 'b,' has an empty name",
        ),
        ('[guests.translate.images]\na = "-v"', "guests.translate.images.a: '-v' is no container"),
        ('[guests.translate.partition]\na = "b"', "guests.translate.partition: "),
        ("[[nodes]]\nnodes = 1\ncores = 0", "nodes[0].cores: is 0; it must be at least 1"),
    ],
)
def test_what_is_no_name_or_node_is_said(said: str, text: str) -> None:
    """With its key."""
    found = errors(f"{GOOD}\n{said}")
    assert any(text in line for line in found), found


@pytest.mark.parametrize(
    ("word", "policy"),
    [
        ('"awrt"', AwrtLocation(open_jobs="count")),
        ('"awrt-completed"', AwrtLocation(open_jobs="ignore")),
        ('["sdsc", "ctc"]', FixedOrder(("sdsc", "ctc"))),
    ],
)
def test_the_order_of_asking(word: str, policy: object) -> None:
    """Each word for the order gives its policy."""
    config = parse_config(
        f"location = {word}\n{GOOD}".encode(), folder=Path("/etc"), shown="site.toml"
    )
    assert location_policy(config, "x") == policy


def test_everything_wrong_is_said_at_once() -> None:
    """Each line has file, key, value and what is allowed."""
    text = GOOD.replace("processors = 100", "processors = 0").replace("users", "user")
    found = errors(text + '[lrms]\ndiscipline = "lifo"\n')
    assert found[0] == ("site.toml: processors: is 0; it must be at least 1")
    assert "site.toml: listen.users: is missing" in found
    assert (
        "site.toml: listen.user: 'user' is no key here, did you mean 'users'? there are: "
        "users, partners"
    ) in found
    assert any(line.startswith("site.toml: lrms.discipline: 'lifo' is no") for line in found)


def test_a_wrong_key_in_a_list_is_named_with_its_place() -> None:
    """Tables in a list are counted from 0."""
    found = errors(GOOD.replace('transfer = "none"', 'transfers = "none"'))
    assert "\n".join(found) == (
        "site.toml: partners[2].transfers: 'transfers' is no key here, did you mean 'transfer'? "
        "there are: name, address, way, keep_open, processors, transfer, shared, tell_users, account, "
        "taken_hours_per_month, taken_hours_per_user, given_hours_per_month"
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"name = ", "no TOML: Invalid value"),
        (b"name = \xff", "byte 7 is not UTF-8 text"),
        (b"a = " + b"[" * 100_000, "(nested too deeply|no TOML)"),
    ],
)
def test_what_is_no_toml_is_said(content: bytes, text: str) -> None:
    """A file that is none at all is refused in a sentence."""
    with pytest.raises(ConfigError, match=text):
        parse_config(content, folder=Path("/etc"), shown="site.toml")


def test_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """A missing, a huge file and a broken rule base are errors in a sentence each."""
    with pytest.raises(ConfigError, match=r"none.toml: cannot be read: No such file"):
        load_config(tmp_path / "none.toml")
    huge = tmp_path / "huge.toml"
    huge.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(ConfigError, match="is larger than"):
        load_config(huge)
    path = tmp_path / "site.toml"
    path.write_text(GOOD.replace('"keep"', '"rules.json"'))
    (tmp_path / "rules.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"site.toml: partners.sdsc.transfer: .*rules.json"):
        load_policies(load_config(path), str(path))


def test_how_long_a_place_is_held(tmp_path: Path) -> None:
    """Five minutes unless the file says more; by a faster clock; and for ever where a coordinator leads."""

    def held(text: str) -> float:
        return place_held(parse_config(text.encode(), folder=tmp_path, shown="kth.toml"))

    assert held(GOOD) == 300.0
    longer = GOOD + "[guests]\nplace_held_s = 900\n"
    assert held(longer) == 900.0
    faster = longer + '[clock]\nkind = "scaled"\nspeed = 10\norigin = 0\n'
    assert held(faster) == 9000.0
    conducted = longer + '[clock]\nkind = "virtual"\n'
    assert held(conducted) == math.inf


# --- strict exchange -----------------------------------------------------------------------------

ONE_PARTNER = """
name = "kth"
processors = 100
{0}
[listen]
users = "kth.sock"
[journal]
path = "kth.journal"
{1}
[[partners]]
name = "ctc"
address = "127.0.0.1:7001"
{2}
"""


def strict(top: str = "", lrms: str = "", partner: str = "") -> SiteConfig:
    """Returns the configuration of a site with one partner."""
    text = ONE_PARTNER.format(top, lrms, partner)
    return parse_config(text.encode(), folder=Path("/etc"), shown="site.toml")


@pytest.mark.parametrize(
    "config",
    [
        strict('rails = "strict-exchange"'),
        strict(partner='transfer = "strict-exchange"'),
        strict('rails = {rules = "strict-exchange"}'),
    ],
)
def test_a_site_keeps_an_account_of_itself(config: SiteConfig) -> None:
    """By a word for all partners or for one, or by a table."""
    within = rails_of(load_policies(config, "site.toml")["ctc"])
    assert within is not None
    assert within.account == AccountRules()


def test_every_number_of_the_account_can_be_said() -> None:
    config = strict(
        'rails = {rules = "strict-exchange", guests = "run", allowance = 0.02, memory = "5d", cap = 0.1, '
        'account = "10min", lost_work = "30min", empty_returns = 3}'
    )
    within = rails_of(load_policies(config, "site.toml")["ctc"])
    assert within is not None
    assert within.account == AccountRules("run", 0.02, 5 * 86_400.0, 0.1, 600.0, 1800.0, 3)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('allowance = "much"', "rails.allowance"),
        ("allowance = -0.01", "rails.allowance"),
        ('memory = "-10d"', "rails.memory"),
        ("memory = 0", "rails.memory"),
        ('account = "soon"', "rails.account"),
        ('lost_work = "-1h"', "rails.lost_work"),
        ("empty_returns = 0", "rails.empty_returns"),
        ('guests = "shoot"', "rails.guests"),
        ("cap = nan", "rails.cap"),
        ("cap = 7", "rails.cap: is 7; it must be at most 1"),
    ],
)
def test_what_no_account_can_be_kept_by_is_said(said: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        strict(f'rails = {{rules = "strict-exchange", {said}}}')


@pytest.mark.parametrize(
    ("top", "lrms", "why"),
    [
        ('"strict-exchange"', '[lrms]\nkind = "slurm"', r"there is no \[lrms.preemption\]"),
        ('"strict-exchange"', '[lrms]\nkind = "gridengine"', r"there is no \[lrms.preemption\]"),
        ('"strict-exchange"', '[lrms]\ndiscipline = "conservative"', "'conservative' cannot"),
        (
            '{rules = "strict-exchange", guests = "run"}',
            '[lrms]\ndiscipline = "conservative"',
            "'conservative' cannot",
        ),
    ],
)
def test_where_a_batch_system_cannot_the_file_is_refused_with_a_way_out(
    top: str, lrms: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        load_policies(strict(f"rails = {top}", lrms), "site.toml")


@pytest.mark.parametrize("lrms", ['kind = "slurm"', 'kind = "gridengine"', 'discipline = "list"'])
def test_guests_run_to_their_ends_above_any_other(lrms: str) -> None:
    config = strict('rails = {rules = "strict-exchange", guests = "run"}', f"[lrms]\n{lrms}")
    assert set(load_policies(config, "site.toml")) == {"ctc"}
    assert shadow_of(config) == (ListScheduling() if "list" in lrms else Easy())
