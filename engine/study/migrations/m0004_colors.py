"""The field `colors` of designs. Earlier studies showed signed sizes and keep doing so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
STUDIES = sa.table("studies", sa.column("id", sa.Integer()), sa.column("design", sa.JSON()))


def upgrade() -> None:
    """Add the field."""
    _change_designs(lambda design: {"colors": "sign", **design})


def downgrade() -> None:
    """Remove the field."""
    _change_designs(lambda design: {name: value for name, value in design.items() if name != "colors"})


def _change_designs(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    link = op.get_bind()
    for study, design in link.execute(sa.select(STUDIES.c.id, STUDIES.c.design)).all():
        link.execute(sa.update(STUDIES).where(STUDIES.c.id == study).values(design=change(design)))
