from pathlib import Path

import pytest

from tagweave.errors import UsageError
from tagweave.formats import FORMATS, format_of
from tagweave.formats.problems import Problems


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.jsonl", "jsonl"),
        ("a/b.JSONL.gz", "jsonl"),
        ("-", "jsonl"),
        (Path("-"), "jsonl"),
        ("x.conll", "conll"),
        ("x.tsv.gz", "conll"),
    ],
)
def test_the_ending_means_the_format(path: str | Path, name: str) -> None:
    assert format_of(path).name == name


def test_a_name_outranks_the_ending() -> None:
    assert format_of("x.json", "jsonl").name == "jsonl"


@pytest.mark.parametrize("path", ["x", "x.docx", "x.gz", ".jsonl"])
def test_endings_that_mean_nothing(path: str) -> None:
    with pytest.raises(UsageError, match=r"means no format.*conll \(.conll"):
        format_of(path)


def test_an_unknown_format_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'jsonl'"):
        format_of("x.conll", "json")


def test_an_ending_means_one_format_or_the_formats_know_their_files() -> None:
    endings = [suffix for format in FORMATS.values() for suffix in format.suffixes if format.recognises is None]
    assert len(endings) == len(set(endings))
    assert all(name == format.name for name, format in FORMATS.items())


def test_xml_is_known_by_its_root(tmp_path: Path) -> None:
    for name, root in (("bioc", "collection"), ("semeval", "sentences")):
        (tmp_path / f"{name}.xml").write_text(f"<{root}/>")
        assert format_of(tmp_path / f"{name}.xml").name == name
    (tmp_path / "other.xml").write_text("<other/>")
    with pytest.raises(UsageError, match=r"the ending '.xml' means several formats. Name one of bioc .*, semeval"):
        format_of(tmp_path / "none.xml")
    with pytest.raises(UsageError, match="several formats, and nothing in the file tells which. Name one of"):
        format_of(tmp_path / "other.xml")


def test_json_is_known_by_its_first_record(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for content, name in (
        ('\ufeff\n{"0": {"data": {}}}', "chmm-alt"),
        ('[{"id": 3, "annotations": [{"result": []}], "data": {"text": "\\"fields\\": {"}}]', "label-studio"),
        ('[\n{"data": {"text": "Ada"}}]', "label-studio"),
        ('[{"id": "a", "fields": {"text": "\\"data\\":"}, "metadata": {}, "suggestions": {}}]', "argilla"),
    ):
        path.write_text(content, encoding="utf-8")
        assert format_of(path).name == name
    lines = '{"text": "Ada", "label": []}\n{"text": "Oslo", "label": []}\n'
    for content in ("[]", "", "3", lines, '[{"text": "Ada", "label": []}]'):
        path.write_text(content)
        with pytest.raises(UsageError, match=r"nothing in the file tells which. Name one of jsonl .*doccano"):
            format_of(path)
    packed = path.with_suffix(".json.gz")
    packed.write_bytes(b"no gzip")
    with pytest.raises(UsageError, match="several formats"):
        format_of(packed)


def test_a_folder_of_brat_is_known_by_its_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing in this folder means a format"):
        format_of(tmp_path)
    (tmp_path / "a.ann").touch()
    assert format_of(tmp_path).name == format_of(tmp_path / "a.ann").name == "brat"


def test_problems_are_counted_by_kind_and_the_first_is_shown() -> None:
    problems = Problems("f")
    for number in range(2000):
        problems.add("a", "things", f"d{number}", f"m{number}")
    problems.add("b", "others", None, "n", count=7)
    assert problems.summary() == "f: 2000 things (first: document 'd0': m0); 7 others (first: n)"
    with pytest.warns() as caught:
        problems.warn()
    message = caught[0].message
    assert message.counts == {"a": 2000, "b": 7}  # type: ignore[union-attr]
    assert len(message.problems) == 1000  # type: ignore[union-attr]
