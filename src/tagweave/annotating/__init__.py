"""Running sources over a corpus, or over a file as a stream, in one process or several."""

from tagweave.annotating.corpora import annotate
from tagweave.annotating.files import annotate_file
from tagweave.annotating.running import TIME_LIMIT, Runner
from tagweave.annotating.statistics import Report, Statistics

__all__ = ["TIME_LIMIT", "Report", "Runner", "Statistics", "annotate", "annotate_file"]
