"""The workspace's folders and the editor's settings for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from warpwright.editor.project import Project, project_of
from warpwright.editor.settings import Settings


@dataclass(frozen=True, slots=True)
class Folders:
    """`everywhere` holds where no folder's settings do; `settings` are those of each folder of the workspace."""

    everywhere: Settings = field(default_factory=Settings)
    settings: Mapping[Path, Settings] = field(default_factory=lambda: {})

    def root_of(self, path: str) -> Path | None:
        """The innermost folder that a file is in."""
        inside = [folder for folder in self.settings if Path(path).is_relative_to(folder)]
        return max(inside, key=lambda folder: len(folder.parts), default=None)

    def project_of(self, path: str) -> Project:
        """What the project that a file is in says; nothing of what is in no file, such as `untitled:Untitled-1`."""
        return project_of(path, self.root_of(path)) if Path(path).is_absolute() else Project()

    def settings_of(self, path: str) -> Settings:
        """The settings that hold for a file: its folder's in the editor, and over them its project's."""
        root = self.root_of(path)
        return self.project_of(path).over(self.everywhere if root is None else self.settings[root])
