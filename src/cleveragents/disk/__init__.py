"""Bytes that a crash leaves whole: files, locks, export files."""
