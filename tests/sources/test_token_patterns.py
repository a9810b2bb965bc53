import json
from pathlib import Path

import pytest

from source_documents import from_words, parsed, tagged, texts
from tagweave.errors import FormatError, SourceError, UsageError
from tagweave.sources import TokenPatterns, create_source, load_sources

pytest.importorskip("spacy")
VERSIONS = [[{"LOWER": "windows"}, {"IS_DIGIT": True}], [{"TEXT": {"REGEX": r"^v\d+$"}}]]
DOCUMENT = from_words("Windows 10 and v3 , windows X , New York City's New York")


def blank(words: str):  # noqa: ANN201
    return parsed(from_words(words), "blank:en")


def test_patterns_on_words_need_no_model() -> None:
    source = create_source("token-patterns", {"name": "p", "type": "PRODUCT", "patterns": VERSIONS})
    assert source.pipeline == "blank:en"
    assert tagged(source, parsed(DOCUMENT, "blank:en")) == [("Windows 10", "PRODUCT"), ("v3", "PRODUCT")]


def test_patterns_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        "[[source]]\nkind = 'token-patterns'\nname = 'p'\ntype = 'PRODUCT'\npatterns = [\n"
        "  [{ LOWER = 'windows' }, { IS_DIGIT = true }],\n  [{ TEXT = { REGEX = '^v\\d+$' } }],\n]\n"
    )
    assert load_sources(path) == [TokenPatterns("p", "PRODUCT", tuple(VERSIONS))]


def test_patterns_on_the_analysis_ask_for_a_pipeline() -> None:
    source = TokenPatterns("p", "X", ([{"pos": "ADJ"}, {"LEMMA": "mouse"}],))
    assert source.pipeline == "en_core_web_sm"
    document = from_words("Three blind mice saw a grey mouse .")
    assert texts(source, parsed(document)) == ["blind mice", "grey mouse"]
    with pytest.raises(SourceError, match="'blank:en' has no LEMMA and no POS"):
        TokenPatterns("p", "X", ([{"POS": "ADJ"}, {"LEMMA": "mouse"}],), pipeline="blank:en").find(
            parsed(document, "blank:en")
        )


def test_the_longest_match_stays() -> None:
    source = TokenPatterns("p", "X", ([{"LOWER": "a", "OP": "+"}], [{"LOWER": "a"}, {"LOWER": "b"}], "b c d"))
    assert texts(source, blank("a a a b c")) == ["a a a"]
    assert texts(source, blank("x a b c d")) == ["b c d", "a"][::-1]


def test_the_files_of_the_entity_ruler(tmp_path: Path) -> None:
    records = [
        {"label": "GPE", "pattern": "New York", "id": "ny"},
        {"label": "PRODUCT", "pattern": VERSIONS[0]},
        {"pattern": [{"LOWER": "x"}]},
    ]
    (tmp_path / "p.jsonl").write_text("\n\n".join(map(json.dumps, records)), encoding="utf-8")
    (tmp_path / "p.json").write_text(json.dumps([*records, "and"]), encoding="utf-8")
    for name, more in (("p.jsonl", []), ("p.json", [("and", "MISC")])):
        source = create_source("token-patterns", {"name": "p", "type": "MISC", "files": name}, tmp_path)
        assert source.types == ("GPE", "PRODUCT", "MISC")
        expected = [("Windows 10", "PRODUCT"), *more, ("X", "MISC"), ("New York", "GPE"), ("New York", "GPE")]
        assert tagged(source, parsed(DOCUMENT, "blank:en")) == expected


def test_files_that_spacy_saves(tmp_path: Path) -> None:
    import spacy

    ruler = spacy.blank("en").add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "New York"}, {"label": "PRODUCT", "pattern": VERSIONS[0]}])
    ruler.to_disk(tmp_path / "saved.jsonl")
    source = TokenPatterns("p", files=(tmp_path / "saved.jsonl",))
    assert texts(source, parsed(DOCUMENT, "blank:en")) == ["Windows 10", "New York", "New York"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"type": "X"}, "'p' has neither patterns nor files"),
        ({"patterns": ["a"]}, "has no type"),
        ({"type": "X", "patterns": [{"LOWER": "a"}]}, r'\{"LOWER": "a"\} is no pattern'),
        ({"type": "X", "patterns": [" "]}, "is no pattern"),
        ({"type": "X", "patterns": [[]]}, "is no pattern"),
        ({"type": "X", "patterns": [[{"LOVER": "a"}]]}, "spaCy does not take the pattern"),
        ({"type": "X", "patterns": [[{"LOWER": 5}]]}, "spaCy does not take the pattern"),
        ({"type": "X", "patterns": [[{"LOWER": "a", "OP": "?!"}]]}, "spaCy does not take the pattern"),
    ],
)
def test_wrong_patterns(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        create_source("token-patterns", {"name": "p", **settings}).load()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.jsonl", '{"label": "X", "pattern": "a"}\n{"label"', r"p\.jsonl, line 2: not JSON"),
        ("p.jsonl", '{"label": "X"}', r"p\.jsonl, line 1: .* is no pattern"),
        ("p.json", '{"label": "X", "pattern": "a"}', r"p\.json: must hold a list"),
        ("p.json", '["a", 5]', r"p\.json, record 2: 5 is no pattern"),
    ],
)
def test_wrong_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        create_source("token-patterns", {"name": "p", "type": "X", "files": name}, tmp_path)
