"""Indexes that find the newest time of a study's votes and of all events."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the indexes."""
    op.create_index(op.f("ix_votes_study_at"), "votes", ["study", "at"], unique=False)
    op.create_index(op.f("ix_events_at"), "events", ["at"], unique=False)


def downgrade() -> None:
    """Drop the indexes."""
    op.drop_index(op.f("ix_events_at"), "events")
    op.drop_index(op.f("ix_votes_study_at"), "votes")
