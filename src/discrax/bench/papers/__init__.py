"""The papers, a folder each: its suites, what only it needs, and the tables it prints (printed/tableNN_*.csv).

A new paper is a folder whose `SUITES` names the modules with suites; nothing else has to know of it.
"""
