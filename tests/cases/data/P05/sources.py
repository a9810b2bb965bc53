import os

from tagweave import Document, labeling_function


@labeling_function("PORT")
def ports(document: Document) -> list[tuple[int, int]]:
    if document.id == os.environ.get("FAILS_AT"):
        raise OSError("the list of ports is gone")
    return [(i, i + 1) for i, token in enumerate(document.tokens) if token in ("Genua", "Triest")]
