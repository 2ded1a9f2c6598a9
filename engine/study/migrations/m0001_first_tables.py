"""The first tables for studies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("design", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("opened", sa.Double(), nullable=True),
        sa.Column("closed", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_studies")),
        sa.UniqueConstraint("token", name=op.f("uq_studies_token")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "annotators",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("pseudonym", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("joined", sa.Double(), nullable=False),
        sa.Column("consented", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name=op.f("fk_annotators_study"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotators")),
        sa.UniqueConstraint("study", "code", name=op.f("uq_annotators_study_code")),
        sa.UniqueConstraint("study", "pseudonym", name=op.f("uq_annotators_study_pseudonym")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_annotators_study"), "annotators", ["study"], unique=False)
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name=op.f("fk_events_study"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_events_study"), "events", ["study"], unique=False)
    op.create_table(
        "items",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("practice", sa.Boolean(), nullable=False),
        sa.Column("input", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("picture", sa.LargeBinary(), nullable=True),
        sa.Column("label", sa.String(), nullable=True),
        sa.Column("prediction", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name=op.f("fk_items_study"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
        sa.UniqueConstraint("study", "place", name=op.f("uq_items_study_place")),
    )
    op.create_index(op.f("ix_items_study"), "items", ["study"], unique=False)
    op.create_table(
        "shown",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("provenance", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["item"], ["items.id"], name=op.f("fk_shown_item"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shown")),
        sa.UniqueConstraint("item", "place", name=op.f("uq_shown_item_place")),
    )
    op.create_index(op.f("ix_shown_item"), "shown", ["item"], unique=False)
    op.create_table(
        "votes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("order", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("ranks", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("guess", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("superseded_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["annotator"], ["annotators.id"], name=op.f("fk_votes_annotator"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["item"], ["items.id"], name=op.f("fk_votes_item"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name=op.f("fk_votes_study"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_votes")),
        sa.UniqueConstraint("annotator", "token", name=op.f("uq_votes_annotator_token")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_votes_annotator"), "votes", ["annotator"], unique=False)
    op.create_index(op.f("ix_votes_item"), "votes", ["item"], unique=False)
    op.create_index(op.f("ix_votes_study"), "votes", ["study"], unique=False)
    op.create_index(
        "uq_votes_current",
        "votes",
        ["annotator", "item", "repeat"],
        unique=True,
        sqlite_where=sa.text("superseded_by IS NULL"),
        postgresql_where=sa.text("superseded_by IS NULL"),
    )


def downgrade() -> None:
    """Drop the tables, including all studies."""
    for table in ("votes", "shown", "items", "events", "annotators", "studies"):
        op.drop_table(table)
