"""Files of each format that are broken in the ways of that format."""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile.cases import Case, Ends

Broken = dict[str, tuple[str, Ends, str]]
"""Content by name, how reading it must end, and what must be said."""

COLUMNS: Broken = {
    "no_tag": ("Ada B-PER\nsaw\n", "refused", "line 2"),
    "no_token": ("Ada B-PER\n\t\tO\n", "refused", "line 2|1 columns|no tag"),
    "zero_tag": ("Ada 0\nsaw 0\n", "refused", "line 1.*O"),
    "prefix_only": ("Ada B-\n", "refused", "line 1"),
    "prefix_of_prefix": ("Ada B-B-PER\n", "cleanly", ""),
    "inside_first": ("Ada I-PER\nsaw O\nBo I-PER\nOslo B-PER\n", "cleanly", ""),
    "mixed_schemes": ("Ada B-PER\nBo S-PER\nOslo U-LOC\nx M-LOC\n", "cleanly", ""),
    "mixed_columns": ("Ada NNP B-PER\nsaw O\nOslo a b c d B-LOC\n", "cleanly", ""),
    "only_docstart": ("-DOCSTART- O\n\n-DOCSTART- O\n", "cleanly", ""),
    "only_comments": ("# a = b\n# c = d\n", "cleanly", ""),
    "only_separators": ("\n\t\n \n\n", "cleanly", ""),
    "quoted": ('"Ada" "B-PER"\n', "refused", "line 1"),
    "csv": ("token,tag\nAda,B-PER\n", "refused", "line 1"),
    "html": ("<html><body>Ada</body></html>\n", "refused", "line 1"),
    "json": ('{"id": "a", "tokens": ["Ada"]}\n', "refused", "line 1"),
    "long_sentence": ("Ada B-PER\n" * 300_000, "cleanly", ""),
    "many_types": ("".join(f"w B-T{n}\n" for n in range(40_000)), "refused", "types"),
    "number_tag": ("Ada 1\n", "refused", "line 1"),
}

CONLLU: Broken = {
    "few_columns": ("1\tAda\t_\n", "refused", "line 1.*columns"),
    "blanks": ("1 Ada _ _ _ _ _ _ _ _\n", "refused", "line 1"),
    "no_number": ("x\tAda" + "\t_" * 8 + "\n", "refused", "line 1"),
    "gap": ("1\tAda" + "\t_" * 8 + "\n3\tsaw" + "\t_" * 8 + "\n", "refused", "line 2"),
    "huge_number": ("9" * 6000 + "\tAda" + "\t_" * 8 + "\n", "refused", "line 1"),
    "other_digits": ("\u0661\tAda" + "\t_" * 8 + "\n", "cleanly", ""),
    "superscript": ("\u00b9\tAda" + "\t_" * 8 + "\n", "refused", "line 1"),
    "huge_range": ("1-999999999\tAda" + "\t_" * 8 + "\n1\tAda" + "\t_" * 8 + "\n", "refused", "line 1"),
    "reversed_range": ("2-1\tAda" + "\t_" * 8 + "\n1\tA" + "\t_" * 8 + "\n2\tda" + "\t_" * 8 + "\n", "refused", "line"),
    "other_text": ("# text = Rome\n1\tAda" + "\t_" * 8 + "\n", "refused", "line"),
    "same_id": (("# sent_id = a\n1\tAda" + "\t_" * 8 + "\n\n") * 2, "refused", "occurs twice"),
    "stray_tag": ("1\tAda" + "\t_" * 7 + "\tNER=0\n", "refused", "line 1"),
    "no_columns": ("# global.columns =\n1\tAda\n", "refused", "line 2"),
    "doubled_columns": ("# global.columns = ID ID FORM FORM\n1\t1\tAda\tBo\n", "cleanly", ""),
    "no_form": ("# global.columns = ID NER\n1\tB-PER\n", "refused", "line 2"),
    "only_comments": ("# sent_id = a\n\n# sent_id = b\n\n", "cleanly", ""),
    "empty_node_only": ("1.1\tAda" + "\t_" * 8 + "\n", "cleanly", ""),
    "misc_garbage": ("1\tAda" + "\t_" * 7 + "\t|||==|NER=B-PER=|NER\n", "cleanly", ""),
}

PUBTATOR: Broken = {
    "no_title": ("1|a|Ada\n", "refused", "line 1"),
    "mention_first": ("1\t0\t3\tAda\tPER\t-\n", "refused", "line 1"),
    "other_article": ("1|t|Ada\n2\t0\t3\tAda\tPER\t-\n", "refused", "line 2"),
    "two_abstracts": ("1|t|Ada\n1|a|saw\n1|a|Oslo\n", "refused", "line 3"),
    "other_words": ("1|t|Ada saw\n1\t0\t3\tBob\tPER\t-\n", "refused", "line 2|'1'"),
    "beyond": ("1|t|Ada\n1\t0\t99\tAda\tPER\t-\n", "refused", "line 2|'1'"),
    "reversed": ("1|t|Ada\n1\t3\t0\tAda\tPER\t-\n", "refused", "line 2|'1'"),
    "negative": ("1|t|Ada\n1\t-3\t3\tAda\tPER\t-\n", "cleanly", ""),
    "fraction": ("1|t|Ada\n1\t0.0\t3.0\tAda\tPER\t-\n", "cleanly", ""),
    "huge": ("1|t|Ada\n1\t0\t" + "9" * 5000 + "\tAda\tPER\t-\n", "refused", "line 2"),
    "few_cells": ("1|t|Ada\n1\t0\t3\n", "refused", "line 2"),
    "no_type": ("1|t|Ada\n1\t0\t3\tAda\t\t-\n", "refused", "line 2"),
    "same_id": ("1|t|Ada\n\n1|t|Bo\n", "refused", "twice"),
    "no_id": ("|t|Ada\n", "refused", "line 1"),
    "blank_line_inside": ("1|t|Ada\n\n1\t0\t3\tAda\tPER\t-\n", "refused", "line 3"),
    "many_types": ("1|t|Ada\n" + "".join(f"1\t0\t3\tAda\tT{n}\t-\n" for n in range(40_000)), "refused", "types"),
}

LABEL_STUDIO: Broken = {
    "object": ("{}", "refused", ""),
    "no_data": ("[{}]", "refused", "item 0"),
    "numbers": ("[1, 2]", "refused", "item 0"),
    "nulls": ("[null]", "refused", "item 0"),
    "data_list": ('[{"data": []}]', "refused", "item 0"),
    "no_text": ('[{"data": {"html": "a"}}]', "refused", "item 0.*field"),
    "text_number": ('[{"data": {"text": 1}}]', "refused", "item 0"),
    "id_list": ('[{"id": [1], "data": {"text": "a"}}]', "refused", "item 0"),
    "id_object_in_data": ('[{"data": {"id": {}, "text": "a"}}]', "refused", "item 0"),
    "annotations_text": ('[{"data": {"text": "a"}, "annotations": "b"}]', "refused", "item 0"),
    "annotations_numbers": ('[{"data": {"text": "a"}, "annotations": [1]}]', "cleanly", ""),
    "result_text": ('[{"data": {"text": "a"}, "annotations": [{"result": "b"}]}]', "refused", "item 0"),
    "result_null": ('[{"data": {"text": "a"}, "annotations": [{"result": null}]}]', "cleanly", ""),
    "version_number": ('[{"data": {"text": "a"}, "predictions": [{"model_version": 1}]}]', "refused", "item 0"),
    "cut": ('[{"data": {"text": "a"}},', "refused", ""),
    "not_closed": ('[{"data": {"text": "a"}}', "refused", ""),
    "nested": ("[" * 100_000 + "]" * 100_000, "refused", "nested"),
    "two_lists": ("[]\n[]\n", "refused", ""),
    "relations": ('[{"data": {"text": "a"}, "annotations": [{"result": [{"type": "relation"}]}]}]', "repaired", ""),
    "labels_numbers": (
        json.dumps([{"data": {"text": "a"}, "annotations": [{"result": [
            {"type": "labels", "value": {"start": 0, "end": 1, "labels": [7, None, []]}}]}]}]),
        "repaired", "not in the text|left out"),
    "spans_strange": (
        json.dumps([{"data": {"text": "Ada"}, "annotations": [{"result": [
            {"type": "labels", "value": {"start": start, "end": end, "labels": ["A"]}}
            for start, end in ((-1, 2), (2, 1), (0, 99), ("0", "1"), (0.5, 1.5), (None, None), (0, 2**70))]}]}]),
        "repaired", "7 spans"),
    "other_words": (
        json.dumps([{"data": {"text": "Ada"}, "annotations": [{"result": [
            {"type": "labels", "value": {"start": 0, "end": 3, "text": "Bob", "labels": ["A"]}}]}]}]),
        "refused", "item 0"),
}  # fmt: skip

DOCCANO: Broken = {
    "no_text": ('{"id": 1, "label": []}', "refused", "line 1"),
    "text_null": ('{"id": 1, "text": null, "label": []}', "refused", "line 1"),
    "classification": ('{"id": 1, "text": "Ada", "label": ["good"]}', "refused", "line 1"),
    "label_text": ('{"id": 1, "text": "Ada", "label": "good"}', "refused", "line 1"),
    "two_keys": ('{"id": 1, "text": "Ada", "label": [], "labels": [[0, 3, "A"]]}', "cleanly", ""),
    "spans_strange": ('{"id": 1, "text": "Ada", "label": [[3, 0, "A"], [0, 9, "A"], [0, 3], 5, null]}', "repaired", ""),
    "relations_strange": ('{"id": 1, "text": "Ada", "label": [], "relations": [1, null]}', "repaired", "relations"),
    "same_id": ('{"id": 1, "text": "Ada"}\n{"id": 1, "text": "Bo"}', "refused", "line 2.*twice"),
    "id_object": ('{"id": {}, "text": "Ada"}', "refused", "line 1"),
}

PRODIGY: Broken = {
    "tokens_text": ('{"text": "Ada", "tokens": "Ada"}', "refused", "line 1"),
    "tokens_strings": ('{"text": "Ada", "tokens": ["Ada"]}', "refused", "line 1"),
    "token_places": ('{"text": "Ada", "tokens": [{"text": "Ada", "start": 0, "end": 99}]}', "refused", "line 1"),
    "token_negative": ('{"text": "Ada", "tokens": [{"text": "a", "start": -1, "end": 3}]}', "refused", "line 1"),
    "token_fraction": ('{"text": "Ada", "tokens": [{"text": "Ada", "start": 0.0, "end": 3.0}]}', "refused", "line 1"),
    "no_text": ('{"tokens": [{"text": "Ada", "start": 0, "end": 3}]}', "refused", "line 1"),
    "spans_text": ('{"text": "Ada", "spans": "a"}', "refused", "line 1"),
    "answer_number": ('{"text": "Ada", "answer": 7}', "repaired", "not accepted"),
    "answer_list": ('{"text": "Ada", "answer": ["accept"]}', "repaired", "not accepted"),
    "token_span_beyond": (
        '{"text": "Ada", "tokens": [{"text": "Ada", "start": 0, "end": 3}], '
        '"spans": [{"token_start": 0, "token_end": 1, "label": "A"}]}', "refused", "line 1"),
    "token_span_strange": (
        '{"text": "Ada", "tokens": [{"text": "Ada", "start": 0, "end": 3}], '
        '"spans": [{"token_start": "0", "token_end": 0, "label": "A"}]}', "refused", "line 1"),
    "token_span_moved": (
        '{"text": "Ada", "tokens": [{"text": "Ada", "start": 0, "end": 3}], '
        '"spans": [{"token_start": 0, "token_end": 0, "start": 1, "label": "A"}]}', "refused", "line 1"),
}  # fmt: skip

ARGILLA: Broken = {
    "no_fields": ("{}", "refused", "line 1"),
    "fields_list": ('{"fields": []}', "refused", "line 1"),
    "text_number": ('{"fields": {"text": 1}}', "refused", "line 1"),
    "suggestions_list": ('{"fields": {"text": "a"}, "suggestions": [1]}', "refused", "line 1"),
    "suggestion_text": ('{"fields": {"text": "a"}, "suggestions": {"spans": "b"}}', "refused", "line 1"),
    "suggestion_value": ('{"fields": {"text": "a"}, "suggestions": {"spans": {"value": 7}}}', "repaired", ""),
    "scores_many": (
        '{"fields": {"text": "a"}, "suggestions": {"spans": {"value": [], "score": [0.5, 1]}}}', "refused", "line 1"),
    "scores_strange": (
        '{"fields": {"text": "a"}, "suggestions": {"spans": '
        '{"value": [{"start": 0, "end": 1, "label": "A"}], "score": ["x"]}}}', "cleanly", ""),
    "responses_list": ('{"fields": {"text": "a"}, "responses": [1]}', "refused", "line 1"),
    "responses_value": ('{"fields": {"text": "a"}, "responses": {"spans": [{"value": 7}]}}', "cleanly", ""),
    "responses_numbers": ('{"fields": {"text": "a"}, "responses": {"spans": [7]}}', "cleanly", ""),
    "responses_object": ('{"fields": {"text": "a"}, "responses": {"spans": {"value": []}}}', "cleanly", ""),
    "metadata_list": ('{"fields": {"text": "a"}, "metadata": []}', "cleanly", ""),
    "id_object": ('{"id": {}, "fields": {"text": "a"}}', "refused", "line 1"),
}  # fmt: skip

CHMM_ALT: Broken = {
    "list": ("[]", "refused", ""),
    "number": ("7", "refused", ""),
    "sentence_list": ('{"0": []}', "refused", "'0'"),
    "no_data": ('{"0": {}}', "refused", "'0'"),
    "text_string": ('{"0": {"data": {"text": "Ada"}}}', "refused", "'0'"),
    "text_numbers": ('{"0": {"data": {"text": [1]}}}', "refused", "'0'"),
    "label_number": ('{"0": {"label": 7, "data": {"text": ["Ada"]}}}', "refused", "'0'"),
    "label_object": ('{"0": {"label": {"a": 1}, "data": {"text": ["Ada"]}}}', "refused", "'0'"),
    "label_beyond": ('{"0": {"label": [[0, 9, "A"]], "data": {"text": ["Ada"]}}}', "refused", "'0'"),
    "votes_number": ('{"0": {"weak_labels": 7, "data": {"text": ["Ada"]}}}', "refused", "'0'"),
    "votes_null": ('{"0": {"weak_labels": [null], "data": {"text": ["Ada"]}}}', "refused", "'0'"),
    "votes_flat": ('{"0": {"weak_labels": [[0, 1, "A"]], "data": {"text": ["Ada"]}}}', "refused", "'0'"),
    "id_list": ('{"0": {"data": {"id": [], "text": ["Ada"]}}}', "refused", "'0'"),
    "same_id": (json.dumps({str(n): {"data": {"id": "a", "text": ["Ada"]}} for n in range(2)}), "refused", "twice"),
    "nested": ('{"0":' * 100_000, "refused", "nested"),
    "ragged": (
        '{"0": {"weak_labels": [[]], "data": {"text": ["a"]}}, '
        '"1": {"weak_labels": [[], []], "data": {"text": ["a"]}}}', "cleanly", ""),
}  # fmt: skip

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
PREFIXES = {
    "entity_bomb": f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>',
    "blow_up": f'<!DOCTYPE x [<!ENTITY l11 "{"ha" * 50_000}">]>',
    "external_entity": '<!DOCTYPE x [<!ENTITY l11 SYSTEM "file:///etc/passwd">]>',
    "remote_entity": '<!DOCTYPE x [<!ENTITY l11 SYSTEM "http://192.0.2.1/x">]>',
    "device_entity": '<!DOCTYPE x [<!ENTITY l11 SYSTEM "file:///dev/zero">]>',
    "parameter_entity": '<!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]>',
    "remote_type": '<!DOCTYPE x SYSTEM "http://192.0.2.1/x.dtd">',
    "no_declaration": "",
}
"""What stands before the root of an XML file in which the text is an entity, `&l11;`."""

_BIOC = "<collection><document><id>a</id><passage><offset>0</offset><text>%s</text>%s</passage></document></collection>"
_SEMEVAL = '<sentences><sentence id="a"><text>%s</text>%s</sentence></sentences>'
_TERM = '<aspectTerms><aspectTerm term="%s" from="%s" to="%s"/></aspectTerms>'


def _annotation(kind: str, offset: str, length: str, text: str) -> str:
    return (
        f'<annotation id="1"><infon key="type">{kind}</infon><location offset="{offset}" length="{length}"/>'
        f"<text>{text}</text></annotation>"
    )


BIOC: Broken = {
    **{name: (prefix + _BIOC % ("&l11;" * 100, ""), "refused", "") for name, prefix in PREFIXES.items()},
    "other_root": ("<documents/>", "refused", "root"),
    "html": ("<html><body><p>Ada</body></html>", "refused", ""),
    "cut": (_BIOC[:60], "refused", "well-formed"),
    "no_offset": (_BIOC.replace("<offset>0</offset>", "") % ("Ada", ""), "refused", "'a'"),
    "offset_text": (_BIOC.replace(">0<", ">x<") % ("Ada", ""), "refused", "'a'"),
    "offset_negative": (_BIOC.replace(">0<", ">-5<") % ("Ada", ""), "refused", "'a'"),
    "offset_huge": (_BIOC.replace(">0<", f">{'9' * 15}<") % ("Ada", ""), "cleanly", ""),
    "offset_endless": (_BIOC.replace(">0<", f">{'9' * 6000}<") % ("Ada", ""), "refused", "'a'"),
    "beyond": (_BIOC % ("Ada", _annotation("PER", "0", "99", "Ada")), "refused", "'a'"),
    "negative": (_BIOC % ("Ada", _annotation("PER", "-1", "3", "Ada")), "refused", "'a'"),
    "fraction": (_BIOC % ("Ada", _annotation("PER", "0.5", "3", "Ada")), "refused", "'a'"),
    "other_words": (_BIOC % ("Ada", _annotation("PER", "0", "3", "Bob")), "refused", "'a'"),
    "no_type": (_BIOC % ("Ada", _annotation("", "0", "3", "Ada")), "refused", "'a'"),
    "same_id": (
        _BIOC.replace("</document>", "</document><document><id>a</id></document>") % ("Ada", ""), "refused", ""),
    "nested": ("<collection>" + "<a>" * 100_000, "refused", "well-formed"),
    "many_attributes": ("<collection " + " ".join(f'a{n}="1"' for n in range(100_000)) + "/>", "cleanly", ""),
    "long_text": (_BIOC % ("x" * 11_000_000, ""), "refused", "well-formed"),
    "no_documents": ("<collection/>", "cleanly", ""),
    "latin1_declared": ('<?xml version="1.0" encoding="x-unknown"?>' + _BIOC % ("Ada", ""), "refused", ""),
    "overlapping_passages": (
        _BIOC.replace("<passage>", "<passage><offset>0</offset><text>Ada</text></passage><passage>") % ("Bo", ""),
        "refused", "'a'"),
}  # fmt: skip

SEMEVAL: Broken = {
    **{name: (prefix + _SEMEVAL % ("&l11;" * 100, ""), "refused", "") for name, prefix in PREFIXES.items()},
    "other_root": ("<collection/>", "refused", "root"),
    "no_text": ('<sentences><sentence id="a"/></sentences>', "refused", "'a'"),
    "no_place": (_SEMEVAL % ("Ada", '<aspectTerms><aspectTerm term="Ada"/></aspectTerms>'), "refused", "'a'"),
    "place_text": (_SEMEVAL % ("Ada", _TERM % ("Ada", "x", "y")), "refused", "'a'"),
    "place_negative": (_SEMEVAL % ("Ada", _TERM % ("Ada", "-3", "0")), "refused", "'a'"),
    "place_huge": (_SEMEVAL % ("Ada", _TERM % ("Ada", "0", "9" * 5000)), "refused", "'a'"),
    "reversed": (_SEMEVAL % ("Ada", _TERM % ("Ada", "3", "0")), "refused", "'a'"),
    "other_words": (_SEMEVAL % ("Ada", _TERM % ("Bob", "0", "3")), "refused", "'a'"),
    "same_id": ((_SEMEVAL % ("Ada", "")).replace("</sentences>", '<sentence id="a"><text/></sentence></sentences>'),
                "refused", ""),
    "text_in_text": (_SEMEVAL % ("<b>Ada</b>", ""), "cleanly", ""),
}  # fmt: skip

TEXTS: Broken = {
    "columns": ("Ada B-PER\nsaw O\nOslo B-LOC\n", "refused", "columns"),
    "only_zero_width": ("\u200b\u200b\u200b\n\ufeff\n", "cleanly", ""),
    "only_combining": ("\u0301" * 1000 + "\n", "cleanly", ""),
    "many_accents": ("e" + "\u0301" * 100_000 + "\n", "cleanly", ""),
    "long_words": ("x" * 3_000_000 + "\n" + "-" * 100_000 + "\n", "fine", ""),
    "right_to_left": ("\u202e\u05d0\u05d1\u202c \u2067Ada\u2069\n", "fine", ""),
    "control": ("".join(map(chr, range(1, 32))) + "\n", "fine", ""),
    "private": ("\ue000\U000f0000\uffff\ufffe\ufffd\n", "fine", ""),
    "separators": ("Ada\u2028saw\u2029Oslo\x85Bo\x0c\n", "fine", ""),
}

TEXT_FORMATS: dict[str, tuple[str, Broken]] = {
    "conll": (".conll", COLUMNS),
    "conllu": (".conllu", CONLLU),
    "pubtator": (".pubtator", PUBTATOR),
    "label-studio": (".json", LABEL_STUDIO),
    "doccano": (".jsonl", DOCCANO),
    "prodigy": (".jsonl", PRODIGY),
    "argilla": (".jsonl", ARGILLA),
    "chmm-alt": (".json", CHMM_ALT),
    "bioc": (".xml", BIOC),
    "semeval": (".xml", SEMEVAL),
    "text": (".txt", TEXTS),
}


def contents(folder: Path) -> Iterator[Case]:
    """All of them."""
    for name, (ending, broken) in TEXT_FORMATS.items():
        place = folder / name
        place.mkdir()
        for what, (content, ends, says) in broken.items():
            path = place / f"{what}{ending}"
            path.write_text(content, encoding="utf-8", newline="\n")
            yield Case(path, ends, says, name)
    yield from _columns_with_options(folder / "conll")
    yield from _meta(folder / "metas")
    yield from _brat(folder / "brat")
    yield from _docbins(folder / "docbin")


def _columns_with_options(folder: Path) -> Iterator[Case]:
    for what, content, options, says in (
        ("delimiter", "Ada\tB-PER\nsaw O\n", ("delimiter=\t",), "line 2"),
        ("far_column", "Ada B-PER\n", ("column=9",), "line 1"),
        ("no_column", "Ada B-PER\n", ("column=0",), "column 0"),
        ("unknown_scheme", "Ada B-PER\n", ("scheme=BOI",), "scheme"),
        ("unknown_option", "Ada B-PER\n", ("schema=BIO",), "scheme"),
        ("no_number", "Ada B-PER\n", ("column=" + "9" * 5000,), "column"),
    ):
        path = folder / f"option_{what}.conll"
        path.write_text(content)
        named = path.name if "line" in says else ""
        yield Case(path, "refused", says, "conll", options, named)


def _meta(folder: Path) -> Iterator[Case]:
    """`meta.json` beside the JSON of CHMM-ALT."""
    good = '{"0": {"weak_labels": [[]], "data": {"text": ["Ada"]}}}'
    metas = {
        "broken": "{",
        "list": "[]",
        "names": '{"lf": "a"}',
        "numbers": '{"lf": [1]}',
        "many": '{"lf": ["a", "b"]}',
    }
    for what, meta in metas.items():
        place = folder / what
        place.mkdir(parents=True)
        (place / "train.json").write_text(good)
        (place / "meta.json").write_text(meta)
        yield Case(place / "train.json", "refused", "", "chmm-alt", named="meta.json")
    place = folder / "pipe"
    place.mkdir()
    (place / "train.json").write_text(good)
    os.mkfifo(place / "meta.json")
    yield Case(place / "train.json", "refused", "", "chmm-alt", named="meta.json")


_ANNOTATIONS: dict[str, tuple[str, Ends, str]] = {
    "no_tab": ("T1 PER 0 3 Ada\n", "refused", "line 1"),
    "no_place": ("T1\tPER\tAda\n", "refused", "line 1"),
    "reversed": ("T1\tPER 3 0\tAda\n", "refused", "T1"),
    "beyond": ("T1\tPER 0 99\tAda\n", "refused", "T1"),
    "negative": ("T1\tPER -1 3\tAda\n", "refused", "line 1"),
    "fraction": ("T1\tPER 0.0 3.0\tAda\n", "refused", "line 1"),
    "huge": (f"T1\tPER 0 {'9' * 5000}\tAda\n", "refused", "line 1"),
    "other_words": ("T1\tPER 0 3\tBob\n", "refused", "T1"),
    "many_pieces": ("T1\tPER " + ";".join(["0 1"] * 20_000) + "\tA\n", "cleanly", ""),
    "broken_pieces": ("T1\tPER 0 1;;2 3\tA a\n", "refused", "line 1"),
    "garbage": ("hello\n", "refused", "line 1"),
    "events": ("T1\tPER 0 3\tAda\nE1\tT1\nR1\tX Arg1:T1\n*\tA T1\n#1\tNote T1\tx\n", "repaired", "left out"),
    "same_id": ("T1\tPER 0 3\tAda\nT1\tLOC 0 3\tAda\n", "cleanly", ""),
}


def _brat(folder: Path) -> Iterator[Case]:
    for what, (content, ends, says) in _ANNOTATIONS.items():
        place = folder / what
        place.mkdir(parents=True)
        (place / "a.txt").write_text("Ada saw Oslo\n")
        (place / "a.ann").write_text(content)
        yield Case(place, ends, says, "brat", named="a.ann")
    for what in ("empty", "no_text", "text_folder", "text_pipe", "annotation_pipe", "text_zero"):
        place = folder / what
        place.mkdir()
        if what != "empty":
            (place / "a.ann").write_text("")
        if what == "text_folder":
            (place / "a.txt").mkdir()
        if what == "text_pipe":
            os.mkfifo(place / "a.txt")
        if what == "text_zero":
            (place / "a.txt").symlink_to("/dev/zero")
        if what == "annotation_pipe":
            (place / "a.txt").write_text("Ada")
            (place / "a.ann").unlink()
            os.mkfifo(place / "a.ann")
        yield Case(place, "refused", "", "brat")


def _docbins(folder: Path) -> Iterator[Case]:
    """DocBins whose bytes are what zlib packs, but whose content is nonsense."""
    from srsly import msgpack

    empty: dict[str, Any] = {"attrs": [65, 77, 78], "lengths": b"", "tokens": b"", "spaces": b"", "strings": []}
    one = {**empty, "lengths": struct.pack("<i", 1), "tokens": struct.pack("<QQQ", 1 << 60, 0, 0), "spaces": b"\1"}
    contents: dict[str, Any] = {
        "nothing": {},
        "list": [1, 2],
        "number": 7,
        "negative_length": {**empty, "lengths": struct.pack("<i", -1)},
        "huge_length": {**empty, "lengths": struct.pack("<i", 2**31 - 1)},
        "odd_bytes": {**one, "tokens": b"abc"},
        "no_attributes": {**one, "attrs": []},
        "attributes_text": {**one, "attrs": "abc"},
        "unknown_string": one,
        "strings_numbers": {**one, "strings": [1, 2, None]},
        "flags_short": {**one, "flags": []},
        "flags_text": {**one, "flags": ["x"]},
        "groups_text": {**one, "span_groups": ["x"]},
        "groups_garbage": {**one, "span_groups": [b"\xc1\xc1"]},
        "user_data_garbage": {**one, "strings": ["a"], "user_data": [b"\xc1"]},
        "lengths_text": {**one, "lengths": "abcd"},
    }
    folder.mkdir()
    raws = {name: msgpack.packb(content, use_bin_type=True) for name, content in contents.items()}
    raws["announced_array"] = b"\xdd\xff\xff\xff\xff"
    raws["announced_map"] = b"\xdf\xff\xff\xff\xff"
    raws["announced_bytes"] = b"\xc6\xff\xff\xff\xff"
    raws["nested"] = b"\x91" * 100_000
    raws["extension"] = b"\xc7\x03\x2aabc"
    raws["bomb"] = bytes(1 << 27)
    for name, raw in raws.items():
        path = folder / f"{name}.spacy"
        path.write_bytes(zlib.compress(raw, 9))
        yield Case(path, "refused", "", "docbin")
