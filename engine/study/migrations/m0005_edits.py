"""The column `edit` of items: a changed word and the model's prediction for the edited text."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column."""
    op.add_column("items", sa.Column("edit", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("items", "edit")
