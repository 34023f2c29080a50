"""What may be stored, and how it is written: JSON, text, names, ids, times, merging. Pure."""
