import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Annotations, Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import UsageError
from tagweave.observations import ABSTAIN, observe
from tagweave.soft_labels import SoftLabels


def corpus(*documents: dict[str, list[Span] | None], groups: tuple[str | None, ...] = (), **options: object) -> Corpus:
    names = [*groups, *[None] * len(documents)]
    made = [Document(f"d{i}", ["w"] * 4, group=names[i], sources=sources) for i, sources in enumerate(documents)]
    return Corpus.from_documents(made, **options)  # type: ignore[arg-type]


PER, LOC = Span(0, 2, "PER"), Span(2, 3, "LOC")


def test_labels_of_both_state_spaces() -> None:
    made = corpus({"a": [PER, LOC]})
    assert observe(made, "io", "never").votes[:, 0].tolist() == [2, 2, 1, 0]
    assert observe(made, "bio", "never").votes[:, 0].tolist() == [3, 4, 1, 0]


def test_a_span_that_begins_inside_another_of_its_source_is_settled_by_length() -> None:
    made = corpus({"a": [Span(0, 1, "LOC"), Span(0, 3, "PER"), Span(2, 4, "LOC")]})
    assert observe(made, "bio", "never").votes[:, 0].tolist() == [3, 4, 4, 0]


@pytest.mark.parametrize(
    ("silence", "second", "third"),
    [
        ("never", [0, 0, 0, 0], [0, 0, 0, 0]),
        ("token", [-1, -1, 0, 0], [0, 0, 0, 0]),
        ("sentence", [-1, -1, -1, -1], [0, 0, 0, 0]),
        ("document", [-1, -1, -1, -1], [-1, -1, -1, -1]),
        ("sentence-strict", [-1, -1, -1, -1], [-1, -1, -1, -1]),
        ("document-strict", [-1, -1, -1, -1], [-1, -1, -1, -1]),
        ("always", [-1, -1, -1, -1], [-1, -1, -1, -1]),
    ],
)
def test_meaning_of_silence(silence: str, second: list[int], third: list[int]) -> None:
    made = corpus({"a": [PER], "b": []}, {"a": [], "b": []}, groups=("g", "g"))
    votes = observe(made, "io", silence).votes  # type: ignore[arg-type]
    assert votes[:4, 1].tolist() == second
    assert votes[4:, 1].tolist() == third


@pytest.mark.parametrize(
    ("silence", "first", "third"),
    [("sentence", 0, 0), ("sentence-strict", -1, -1), ("document", 0, 0), ("document-strict", 0, -1)],
)
def test_strict_scopes_abstain_also_where_nobody_speaks(silence: str, first: int, third: int) -> None:
    made = corpus({"a": [PER]}, {"a": []}, {"a": []}, groups=("g", "g", "h"))
    votes = observe(made, "io", silence).votes[:, 0]  # type: ignore[arg-type]
    assert votes[:4].tolist() == [1, 1, 0, 0]
    assert votes[4:8].tolist() == [first] * 4
    assert votes[8:].tolist() == [third] * 4


def test_a_source_that_speaks_elsewhere_in_the_scope_votes_outside_where_it_is_silent() -> None:
    made = corpus({"a": [PER], "b": [LOC]})
    assert observe(made, "io", "sentence").votes.T.tolist() == [[2, 2, 0, 0], [0, 0, 1, 0]]


def test_not_run_silent_and_voting_outside_are_three_things() -> None:
    made = corpus({"ran": [PER], "silent": [], "outside": [Span(0, 2, "O")], "idle": None})
    observed = observe(made, "io", "token")
    assert observed.sources == ("ran", "silent", "outside", "idle")
    assert observed.votes.T.tolist() == [[1, 1, 0, 0], [-1, -1, 0, 0], [0, 0, 0, 0], [-1, -1, -1, -1]]


def test_a_vote_for_outside_does_not_make_others_abstain() -> None:
    made = corpus({"a": [Span(0, 2, "O")], "b": []}, types=["PER"])
    assert observe(made, "io", "sentence").votes[:, 1].tolist() == [0, 0, 0, 0]


def test_coarse_types_spread_over_their_members() -> None:
    made = corpus({"a": [Span(0, 2, "ENT")], "b": [PER, LOC]}, coarse={"ENT": ("PER", "LOC")})
    observed = observe(made, "bio", "always")
    assert observed.labels.names == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert observed.source(0)[:3].tolist() == [[0, 0.5, 0, 0.5, 0], [0, 0, 0.5, 0, 0.5], [0, 0, 0, 0, 0]]


def test_probabilities_of_spans_leave_the_rest_to_outside() -> None:
    made = corpus({"soft": [Span(0, 2, "PER", 0.75)], "hard": [LOC]})
    observed = observe(made, "bio", "token")
    assert observed.sources == ("soft", "hard")
    assert observed.votes.T.tolist() == [[-1, -1, 1, 0]]
    assert observed.source(0).tolist() == observed.soft[:, 0].tolist()
    assert observed.soft[:, 0].tolist() == [[0.25, 0, 0, 0.75, 0], [0.25, 0, 0, 0, 0.75], [0] * 5, [1, 0, 0, 0, 0]]


def test_soft_labels_are_folded_into_io() -> None:
    made = corpus({"a": [PER]}, types=["PER"])
    soft = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.9, 0.05, 0.05], [1, 0, 0]], np.float32)
    observed = observe(made.with_source("tagger", SoftLabels(("PER",), made.offsets, soft)))
    np.testing.assert_allclose(observed.soft[:, 0], [[0.2, 0.8], [0.1, 0.9], [0.9, 0.1], [1, 0]], atol=1e-6)
    assert observed.votes[:, 0].tolist() == [1, 1, 0, 0]


def test_unknown_scope_is_an_error() -> None:
    with pytest.raises(UsageError, match="Did you mean 'sentence'"):
        observe(corpus({"a": []}), "io", "sentences")  # type: ignore[arg-type]


def random_corpus(chance: np.random.Generator) -> Corpus:
    spans = [Span(int(s), int(s) + 1, str(chance.choice(["PER", "LOC", "O", "ENT"]))) for s in chance.integers(0, 4, 6)]
    sources: list[dict[str, list[Span] | None]] = [
        {name: None if chance.random() < 0.2 else spans[k : k + 2] for k, name in enumerate("abc")} for _ in range(3)
    ]
    made = corpus(*sources, {n: [] for n in "abc"}, types=["PER", "LOC"], coarse={"ENT": ("PER", "LOC")})
    soft = chance.dirichlet(np.ones(5), size=16).astype(np.float32)
    made = made.with_source("tagger", SoftLabels(("PER", "LOC"), made.offsets, soft))
    return made.select_sources([str(name) for name in chance.permutation(["a", "b", "c", "tagger"])])


@given(seed=st.integers(0, 10_000), state_space=st.sampled_from(["io", "bio"]))
def test_evidence_and_counts_are_sums_over_what_sources_say(seed: int, state_space: str) -> None:
    chance = np.random.default_rng(seed)
    observed = observe(random_corpus(chance), state_space, "token", "votes")  # type: ignore[arg-type]
    size = len(observed.labels)
    emissions = chance.dirichlet(np.ones(size), size=(4, size))
    weights = chance.dirichlet(np.ones(size), size=16)
    evidence, counts = np.zeros((16, size)), np.zeros((4, size, size))
    for source in range(4):
        for token, said in enumerate(observed.source(source)):
            if said.sum():
                evidence[token] += np.log(emissions[source] @ said)
                counts[source] += np.outer(weights[token], said)
    np.testing.assert_allclose(observed.log_evidence(emissions), evidence, atol=1e-4)
    np.testing.assert_allclose(observed.counts(weights), counts, atol=1e-6)


def test_nothing_at_all() -> None:
    observed = observe(Corpus.from_documents([]))
    assert observed.votes.shape == (0, 0)
    assert observed.log_evidence(np.zeros((0, 1, 1))).shape == (0, 1)


def test_many_documents_stay_small() -> None:
    documents = 20_000
    offsets = np.arange(documents + 1) * 20
    spans = Annotations(
        np.ones(documents, bool), np.arange(documents + 1), np.zeros(documents, np.int32),
        np.full(documents, 2, np.int32), np.ones(documents, np.int16),
    )  # fmt: skip
    one = corpus({"a": [PER]}, types=["PER"])
    made = Corpus(
        one.ids.take(np.zeros(documents, int)), offsets, one.tokens.take(np.zeros(20 * documents, int)), ("PER",)
    )
    for name in "abcd":
        made = made.with_source(name, spans)
    observed = observe(made)
    assert observed.votes.nbytes == 4 * 20 * documents
    assert (observed.votes != ABSTAIN).all()
    assert int(observed.votes.sum()) == 4 * 2 * documents
