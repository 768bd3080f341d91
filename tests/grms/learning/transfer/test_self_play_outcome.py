from grms.learning.checkpoint import Best
from grms.learning.evolution.self_play import joined
from grms.learning.evolution.termination import GenerationRecord
from grms.learning.training import TrainingResult
from grms.learning.transfer.encoding import RuleBaseSettings, encode
from grms.learning.transfer.self_play import MatchFitness
from grms.learning.transfer.self_play_outcome import make_self_play_outcome, self_play_page
from grms.learning.transfer.unseen import compared_match
from grms.policy.constraints import START_NOW
from tests.training_grids import two_sites

SETTINGS = RuleBaseSettings(2, further=("starts_now",))


def test_the_rule_bases_are_those_of_the_best_meeting() -> None:
    """Each with all that tells where it comes from; without unseen workloads the page claims nothing."""
    fitness = MatchFitness([two_sites(1)], START_NOW, SETTINGS)
    genome = joined([SETTINGS.agreeing] * 2)
    record = GenerationRecord(3, 40, 1.0, 2.0, 0.1, 5.0)
    result = TrainingResult(Best(genome, fitness(genome), 0), (record,), "it was enough")
    settings = {"name": "paper", "seed": 7, "settings": {}, "self_play": {"archive": 2}}
    outcome = make_self_play_outcome(
        fitness,
        result,
        compared_match(fitness, ["one"], genome),
        constant="start-now",
        case_names=["one"],
        settings=settings,
        origins=[{"b": {"log": "x"}}],
        commit="0123",
    )
    assert outcome.files() == {"a": "a-for-b.json", "b": "b-for-a.json"}
    for rule_base in outcome.rule_bases.values():
        assert encode(rule_base).to_state() == SETTINGS.agreeing.to_state()
        provenance = rule_base.provenance
        assert provenance["commit"] == "0123"
        assert provenance["rails"]["rules"] == "start-now"
        assert provenance["strategy"] == settings
        assert (provenance["generations"], provenance["evaluations"]) == (3, 40)
        sites = provenance["cases"][0]["sites"]
        assert sites[1]["origin"] == {"log": "x"}
        assert [one["awrt_constant_s"] for one in sites] == list(fitness.constant[0])
        assert "unseen" not in provenance
    page = self_play_page(outcome, "<svg/>", {"a": (), "b": ()})
    assert "Self-play of a, b" in page
    assert "Whether this beats start-now alone is not known" in page
    assert "it was enough" in page
