"""New names for the types of models that others have trained."""

from collections.abc import Iterable, Mapping

from tagweave.errors import unknown_name

CONLL = {
    "PERSON": "PER",
    "ORG": "ORG",
    "GPE": "LOC",
    "LOC": "LOC",
    "FAC": "LOC",
    "NORP": "MISC",
    "EVENT": "MISC",
    "WORK_OF_ART": "MISC",
    "LANGUAGE": "MISC",
    "LAW": "MISC",
    "PRODUCT": "MISC",
}
"""The types of OntoNotes as those of CoNLL-2003; quantities and times have no place there."""

_MAPPINGS: Mapping[str, Mapping[str, str]] = {"CoNLL-2003": CONLL}


def new_names(types: Iterable[str], rename: Mapping[str, str] | str, keep: bool) -> dict[str, str]:
    """What each type is called, without those that are left out.

    Args:
        types: the types of a model.
        rename: new names by old ones, or `CoNLL-2003` for the mapping `CONLL`; nothing leaves all as they are.
        keep: whether types without a new name stay.

    Raises:
        UsageError: there is no such mapping, or no such type.

    >>> new_names(["GPE", "DATE"], "CoNLL-2003", keep=False)
    {'GPE': 'LOC'}
    >>> new_names(["GPE", "DATE"], {"GPE": "LOC"}, keep=True)
    {'GPE': 'LOC', 'DATE': 'DATE'}
    """
    known = list(types)
    if isinstance(rename, str):
        if rename not in _MAPPINGS:
            raise unknown_name("mapping of types", rename, _MAPPINGS)
        rename = _MAPPINGS[rename]
    else:
        for name in rename:
            if name not in known:
                raise unknown_name("type of the model", name, known)
    if not rename:
        return {name: name for name in known}
    return {name: rename.get(name, name) for name in known if keep or name in rename}
