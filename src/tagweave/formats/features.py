"""The `features` that Hugging Face datasets keep beside Arrow columns: what the numbers in a column of labels mean."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tagweave.formats.json_lines import parse_json

METADATA = b"huggingface"
"""Key of the features in the metadata of an Arrow schema."""

Feature = dict[str, Any]


def of_schema(schema: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """The features in the metadata of an Arrow schema, by column; none if there are none.

    Raises:
        FormatError: what stands there is no JSON.
    """
    raw = (schema.metadata or {}).get(METADATA)
    if raw is None:
        return {}
    info = parse_json(raw.decode(errors="replace"))
    about = info.get("info") if isinstance(info, dict) else None
    features = about.get("features") if isinstance(about, dict) else None
    return features if isinstance(features, dict) else {}


def class_names(feature: object) -> list[str] | None:
    """Names of the numbers in a column of labels, or of lists of labels; None if it has no names.

    >>> class_names({"_type": "List", "feature": {"_type": "ClassLabel", "names": ["O", "B-PER"]}})
    ['O', 'B-PER']
    >>> class_names([{"_type": "ClassLabel", "names": ["O"]}])
    ['O']
    """
    while True:
        if isinstance(feature, list) and len(feature) == 1:
            [feature] = feature
        elif isinstance(feature, dict) and "feature" in feature:
            feature = feature["feature"]
        else:
            break
    names = feature.get("names") if isinstance(feature, dict) else None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def value(dtype: str) -> Feature:
    """The feature of a plain column."""
    return {"dtype": dtype, "_type": "Value"}


def listed(feature: Feature, length: int | None = None) -> Feature:
    """The feature of a column of lists, of one length if it is given."""
    return {"feature": feature, **({} if length is None else {"length": length}), "_type": "List"}


def class_label(names: Sequence[str]) -> Feature:
    """The feature of a column of labels."""
    return {"names": [*names], "_type": "ClassLabel"}


def metadata(features: Mapping[str, Feature]) -> dict[bytes, bytes]:
    """Features as metadata of an Arrow schema."""
    return {METADATA: json.dumps({"info": {"features": features}}).encode()}
