"""Sessions as the rest of the program uses them: the service, the contract of its store, export and import."""
