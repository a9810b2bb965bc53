"""The tables of Li et al. (ACL 2021) on the same votes: one small JSON file a run, and pages made from these files.

A run of one system on one data set with one seed is a cell (`cells`). `running` makes the cells that are missing, each
in a process of its own; `tables` and `page` show them beside the published numbers.
"""
