"""Systems by name: `MODEL`, `MODEL+TAGGER`, `MODEL-alt`, `MODEL-alt+TAGGER`, and a few with names of their own.

MODEL is a label model. `+TAGGER` is a tagger that learns from its soft labels, `-alt` is alternate training of both.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from tagweave.alternate import AlternateTraining
from tagweave.benchmark import settings
from tagweave.errors import unknown_name
from tagweave.label_models import LABEL_MODELS, LabelModel, create_label_model
from tagweave.tagger import TAGGERS, Tagger, create_tagger

Special = Literal["supervised", "dev-only", "fine-tuned", "autoner"]

SPECIALS: tuple[Special, ...] = ("supervised", "dev-only", "fine-tuned", "autoner")
"""Systems that are no label model with a tagger: what they learn from is not votes alone."""

ALIASES = {"bond-mv": "mv+bond"}
"""Names of the paper."""

DEFAULT_SYSTEMS = (
    "supervised",
    "best-consensus",
    "autoner",
    "swellshark-np+bert",
    "swellshark+bert",
    "naive-bayes+bert",
    "linked-hmm+bert",
    "bond-mv",
    "majority-vote",
    "span-vote",
    "dawid-skene",
    "naive-bayes",
    "linked-hmm",
    "hmm",
    "chmm-iid",
    "chmm",
    "chmm+bert",
    "chmm-alt",
    "majority-vote-alt",
    "hmm-alt",
    "chmm-iid-alt",
    "dev-only",
    "fine-tuned",
)
"""What `tagweave benchmark paper` runs when it is not told: all rows of the paper, and simple systems beside them."""


@dataclass(frozen=True)
class System:
    """A system that can be run on any data set.

    Attributes:
        name: as the grammar of this module has it, aliases resolved.
        label_model: name of a label model, or None.
        tagger: name of a tagger, or None.
        alternate: whether the two are trained in turn.
        special: one of `SPECIALS`, or None.
    """

    name: str
    label_model: str | None = None
    tagger: str | None = None
    alternate: bool = False
    special: Special | None = None

    @property
    def has_encoder(self) -> bool:
        """Whether an encoder is part of it."""
        return self.tagger is not None or _takes_encoder(self.label_model)

    @property
    def has_chance(self) -> bool:
        """Whether another seed may give another result."""
        return self.has_encoder

    @property
    def uses_gold(self) -> bool:
        """Whether it reads gold to learn or to label, other than to choose."""
        oracle = self.label_model is not None and _label_model(self.label_model).uses_gold
        return oracle or self.special in ("supervised", "dev-only", "fine-tuned")

    def make_label_model(self, encoder: str, seed: int) -> LabelModel:
        """The label model with the settings of the benchmark."""
        if self.label_model is None:
            raise ValueError(f"{self.name} has no label model")
        return _make_label_model(self.label_model, encoder, seed)

    def make_tagger(self, encoder: str, seed: int, **changes: Any) -> Tagger:  # noqa: ANN401
        """The tagger with the settings of the benchmark, and some changed."""
        name = self.tagger or "bert"
        given = {"encoder": encoder, "seed": seed, **settings.TAGGERS.get(name, {}), **changes}
        return create_tagger(settings.TAGGER_KINDS.get(name, name), given)

    def training(self, encoder: str, seed: int) -> AlternateTraining:
        """Label model and tagger in turn; a system without `-alt` is the first round alone."""
        rounds = settings.ALTERNATE if self.alternate else {"rounds": 0}
        return AlternateTraining(
            label_model=self.make_label_model(encoder, seed),
            tagger=self.make_tagger(encoder, seed),
            **rounds,
        )

    def settings(self, encoder: str, seed: int) -> dict[str, Any]:
        """All settings of all its parts."""
        found: dict[str, Any] = {}
        if self.alternate:
            found["alternate"] = dict(settings.ALTERNATE)
        if self.label_model is not None:
            model = self.make_label_model(encoder, seed)
            found["label_model"] = {"kind": model.name, **model.settings()}
        if self.tagger is not None:
            tagger = self.make_tagger(encoder, seed, **self.gold_settings() if self.label_model is None else {})
            found["tagger"] = {"kind": tagger.name, **tagger.settings()}
        if self.special == "fine-tuned":
            found["fine_tuning"] = self.gold_settings()
        return found

    def gold_settings(self) -> dict[str, Any]:
        """What is changed in the tagger where it learns from gold."""
        changes = {
            "supervised": settings.SUPERVISED,
            "dev-only": settings.DEV_ONLY,
            "fine-tuned": settings.FINE_TUNED,
        }
        return dict(changes.get(self.special or "", {}))


def parse_system(text: str) -> System:
    """A system by name.

    Raises:
        UsageError: there is no such system; the message has the nearest name.

    >>> parse_system("chmm-alt")
    System(name='chmm-alt', label_model='chmm', tagger='bert', alternate=True, special=None)
    >>> parse_system("bond-mv").name
    'majority-vote+bond'
    >>> parse_system("mv-alt").name
    'majority-vote-alt'
    >>> parse_system("hmm+brt")
    Traceback (most recent call last):
    tagweave.errors.UsageError: no tagger is called 'brt'. Did you mean 'bert'? Known: autoner, bert, bert-crf, bond
    """
    name = ALIASES.get(text, text)
    if name in SPECIALS:
        label_model = "chmm" if name == "fine-tuned" else None
        return System(name, label_model, "autoner" if name == "autoner" else "bert", special=name)
    base, plus, tagger = name.partition("+")
    models = {*LABEL_MODELS, *settings.LABEL_MODEL_KINDS}
    alternate = base.endswith("-alt") and base not in models
    label_model = base.removesuffix("-alt") if alternate else base
    if label_model not in models:
        raise unknown_name("system", text, [*SPECIALS, *ALIASES, *models, *(f"{model}-alt" for model in models)])
    if label_model not in settings.LABEL_MODELS:
        label_model = _kind(label_model)
    taggers = {*TAGGERS, *settings.TAGGERS}
    if plus and tagger not in taggers:
        raise unknown_name("tagger", tagger, taggers)
    tagger = tagger or "bert" * alternate
    shown = tagger and not (alternate and tagger == "bert")
    return System(label_model + "-alt" * alternate + f"+{tagger}" * bool(shown), label_model, tagger or None, alternate)


def defaults(part: str, kind: str) -> dict[str, Any]:
    """The default settings of a label model or tagger by its part of a system as JSON has them, else nothing."""
    parts: dict[str, Mapping[str, Any]] = {"label_model": LABEL_MODELS, "tagger": TAGGERS}
    known = parts.get(part, {})
    plain: dict[str, Any] = json.loads(json.dumps(known[kind]().settings())) if kind in known else {}
    return plain


def _make_label_model(name: str, encoder: str, seed: int) -> LabelModel:
    given: dict[str, Any] = {"seed": seed, **settings.LABEL_MODELS.get(name, {})}
    if _takes_encoder(name):
        given = {"encoder": encoder, "layers": settings.embedding_layers(encoder), **given}
    return create_label_model(_kind(name), given)


def _kind(label_model: str) -> str:
    return settings.LABEL_MODEL_KINDS.get(label_model, label_model)


def _label_model(name: str) -> type[LabelModel]:
    return LABEL_MODELS[_kind(name)]


def _takes_encoder(label_model: str | None) -> bool:
    return label_model is not None and "encoder" in {field.name for field in fields(_label_model(label_model))}
