"""What a saved tagger says of itself."""

from tagweave.report import in_markdown

CONFIG = "tagweave.json"
"""The file with everything that the library needs to know of a saved tagger."""

_CRF_NOTE = """Tagweave also reads scores of neighbouring labels, `crf.*`, from the weights. The pipeline leaves them
out, so it can find other entities.

"""


def model_card(types: tuple[str, ...], crf: bool) -> str:
    """The README of a folder: what kind of model it holds, and how to use it."""
    names = ", ".join(map(in_markdown, types))
    return f"""---
pipeline_tag: token-classification
library_name: transformers
tags: [named-entity-recognition, tagweave]
---

# Named-entity recogniser

A token classifier for the entity types {names}, trained by tagweave on soft labels. It reads each word from
its first sub-word piece, so use the aggregation strategy `first`; others can end an entity inside a word. tagweave
takes the likeliest sequence in which an entity begins with B; the pipeline decides word by word, which can break
entities up.

```python
from transformers import pipeline

tagger = pipeline("token-classification", model="FOLDER", aggregation_strategy="first")
tagger(["Words", "of", "a", "sentence"], is_split_into_words=True)
```

{_CRF_NOTE if crf else ""}\
With tagweave: `tagweave predict FOLDER FILE.jsonl --out OUT.jsonl`. Settings, seed and versions are in `{CONFIG}`.
"""
