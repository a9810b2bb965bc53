from pathlib import Path

import pytest

from source_documents import from_text, from_words, parsed, tagged, texts
from tagweave.corpus import Document
from tagweave.errors import SourceError, UsageError
from tagweave.sources import OutsideWords, PartsOfSpeech, Punctuation, StopWords, create_source

SENTENCE = "The mice were not seen by Ada's nurse, in the Oslo clinic."


def test_stop_words_are_voted_o_in_runs() -> None:
    found = tagged(StopWords("stop"), from_text(SENTENCE))
    assert found == [("The", "O"), ("were not", "O"), ("by", "O"), ("in the", "O")]


def test_stop_words_of_another_language() -> None:
    pytest.importorskip("spacy")
    assert texts(StopWords("stop", language="fr"), from_text("Le chat est dans le jardin")) == ["Le", "est dans le"]
    with pytest.raises(UsageError, match="'xx'"):
        StopWords("stop", language="xx").load()


def test_own_words_replace_the_list_and_a_language_adds_to_them() -> None:
    pytest.importorskip("spacy")
    document = from_text("Le chat est dans the jardin")
    assert texts(StopWords("stop", ("jardin",)), document) == ["jardin"]
    assert texts(StopWords("stop", ("jardin",), language="fr"), document) == ["Le", "est dans", "jardin"]


def test_words_of_files(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\ufeffmice\n\n nurse \n", encoding="utf-8")
    settings = {"name": "w", "files": "words.txt", "words": ["Oslo"]}
    assert texts(create_source("outside-words", settings, tmp_path), from_text(SENTENCE)) == ["mice", "nurse", "Oslo"]
    with pytest.raises(UsageError, match=r"none\.txt cannot be read"):
        OutsideWords("w", files=(tmp_path / "none.txt",)).load()
    with pytest.raises(UsageError, match="'New York' is more than one word"):
        OutsideWords("w", ("New York",)).load()
    with pytest.raises(UsageError, match="'w' has neither words nor files"):
        OutsideWords("w")


def test_forms_of_words() -> None:
    document = from_words("Mice saw mice and a mouse")
    assert texts(OutsideWords("w", ("mice",), form="exact"), document) == ["mice"]
    assert texts(OutsideWords("w", ("MICE",)), document) == ["Mice", "mice"]


def test_lemmas_need_a_pipeline_that_gives_them() -> None:
    pytest.importorskip("spacy")
    source = OutsideWords("w", ("mouse",), form="lemma")
    assert source.pipeline == "en_core_web_sm"
    document = from_words("The mice saw a mouse .")
    assert texts(source, parsed(document)) == ["mice", "mouse"]
    with pytest.raises(SourceError, match=r"'w', document 'd'.*'en_core_web_sm' is missing"):
        source.find(document)
    with pytest.raises(SourceError, match=r"'blank:en' has no LEMMA\. Set a pipeline"):
        OutsideWords("w", ("mouse",), form="lemma", pipeline="blank:en").find(parsed(document, "blank:en"))
    assert OutsideWords("w", ("mouse",)).pipeline is None


def test_punctuation() -> None:
    document = from_words("Costs ( in $ ) : 5 + x ... ’ 's — a")
    assert texts(Punctuation("p"), document) == ["(", "$ ) :", "+", "... ’", "—"]
    assert texts(Punctuation("p", symbols=False), document) == ["(", ") :", "... ’", "—"]
    assert texts(Punctuation("p", besides=("+", "—")), document) == ["(", "$ ) :", "... ’"]


def test_parts_of_speech() -> None:
    pytest.importorskip("spacy")
    document = parsed(from_words("The old doctor quickly went to the clinic ."))
    assert texts(PartsOfSpeech("p"), document) == ["The", "quickly went to the"]
    assert texts(PartsOfSpeech("p", ("ADJ",), ("old",)), document) == []
    with pytest.raises(SourceError, match="has no POS"):
        PartsOfSpeech("p", pipeline="blank:en").find(parsed(from_words("The clinic"), "blank:en"))
    with pytest.raises(
        UsageError, match="no value of PartsOfSpeech.parts_of_speech is called 'VRB'. Did you mean 'VERB'"
    ):
        create_source("parts-of-speech", {"name": "p", "parts_of_speech": ["VRB"]})


@pytest.mark.parametrize("source", [StopWords("s"), OutsideWords("w", ("a",)), Punctuation("p")])
def test_no_words_no_votes(source: StopWords) -> None:
    assert list(source.find(Document("d", [], "", [])) or ()) == []
