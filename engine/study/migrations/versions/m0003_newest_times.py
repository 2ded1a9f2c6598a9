"""Indexes that find the newest time of a study's votes, and of what happened to any, at once."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Makes them."""
    op.create_index(op.f("ix_votes_study_at"), "votes", ["study", "at"], unique=False)
    op.create_index(op.f("ix_events_at"), "events", ["at"], unique=False)


def downgrade() -> None:
    """Takes them away."""
    op.drop_index(op.f("ix_events_at"), "events")
    op.drop_index(op.f("ix_votes_study_at"), "votes")
