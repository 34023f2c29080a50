"""The store of sessions in SQL, one code for SQLite and PostgreSQL."""
