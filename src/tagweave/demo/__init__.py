"""The corpus that ships with tagweave: gardening sentences, dictionaries, and the sources made of them.

`tagweave.demo.corpus.records` reads a split and lets every source of `tagweave.demo.rules` vote on it. The guidelines
of the gold annotation are in `README.md` beside the text files.
"""
