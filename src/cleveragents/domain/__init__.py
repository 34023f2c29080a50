"""Data and rules, in plain dataclasses and functions: no input, no output, the standard library only."""
