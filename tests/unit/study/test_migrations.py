"""Steps of the database that change what is stored, not only the tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from engine.study.migrations import m0004_colors


def test_studies_from_before_go_on_to_show_signs() -> None:
    studies = sa.Table("studies", sa.MetaData(), sa.Column("id", sa.Integer()), sa.Column("design", sa.JSON()))
    engine = sa.create_engine("sqlite://")
    with engine.begin() as link, Operations.context(MigrationContext.configure(link)):
        studies.create(link)
        stored = [{"id": 1, "design": {"title": "old"}}, {"id": 2, "design": {"title": "new", "colors": "rank"}}]
        link.execute(studies.insert(), stored)
        m0004_colors.upgrade()
        designs = link.scalars(sa.select(studies.c.design).order_by(studies.c.id)).all()
        assert designs == [{"title": "old", "colors": "sign"}, {"title": "new", "colors": "rank"}]
        m0004_colors.downgrade()
        assert link.scalars(sa.select(studies.c.design)).all() == [{"title": "old"}, {"title": "new"}]
    engine.dispose()
