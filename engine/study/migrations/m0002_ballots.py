"""The table of ballots issued to annotators."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

OWNERS = {"study": "studies", "annotator": "annotators", "item": "items"}


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "ballots",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("order", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        *(_foreign_key(column, table) for column, table in OWNERS.items()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ballots")),
        sa.UniqueConstraint("annotator", "item", "repeat", name=op.f("uq_ballots_annotator_item_repeat")),
        sa.UniqueConstraint("token", name=op.f("uq_ballots_token")),
        sqlite_autoincrement=True,
    )
    for column in OWNERS:
        op.create_index(op.f(f"ix_ballots_{column}"), "ballots", [column], unique=False)


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("ballots")


def _foreign_key(column: str, table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_ballots_{column}")
    return sa.ForeignKeyConstraint([column], [f"{table}.id"], name=name, ondelete="CASCADE")
