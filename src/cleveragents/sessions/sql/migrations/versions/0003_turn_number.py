"""A number for each turn of a session, and a name of ours for the place of a plan.

Releases before this one take our tables without ``alembic_version`` for the first schema. They look for ``position``
among them, so that without it they refuse the database instead of recording a wrong schema.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Rename the one column and add the other."""
    op.execute('ALTER TABLE linked_plans RENAME COLUMN "position" TO ordinal')
    op.add_column("sessions", sa.Column("turn_number", WHOLE, nullable=False, server_default="0"))
