from __future__ import annotations

from pathlib import Path

import pytest
from support.editors import Project, new_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return new_project(tmp_path)
