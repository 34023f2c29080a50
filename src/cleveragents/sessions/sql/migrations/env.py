"""Runs the migrations on the connection that sessions/sql/migrate.py hands over, in one transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transaction_per_migration=False,
    version_table=context.config.attributes["version_table"],
)
with context.begin_transaction():
    context.run_migrations()
