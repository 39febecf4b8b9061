"""What a client tells only a server that asks for it is asked for, and of no client that cannot register it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types
from support.editor import VSCODE, Profile, start_editor


@dataclass(frozen=True)
class Registering(Profile):
    """A client that takes registrations, as Visual Studio Code does."""

    def capabilities(self) -> types.ClientCapabilities:
        capabilities = super().capabilities()
        assert capabilities.workspace is not None
        known = types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
        capabilities.workspace.did_change_watched_files = known
        settings = types.DidChangeConfigurationClientCapabilities(dynamic_registration=True)
        capabilities.workspace.did_change_configuration = settings
        return capabilities


def test_changes_of_files_and_settings_are_asked_for(tmp_path: Path) -> None:
    with start_editor(Registering(VSCODE.name, VSCODE.encodings, pulls=True), tmp_path) as editor:
        registered = {
            each.method: each.register_options for each in editor.wait(lambda: editor.registrations, "registrations")
        }
    assert set(registered) == {"workspace/didChangeWatchedFiles", "workspace/didChangeConfiguration"}
    assert "warpwright" in str(registered["workspace/didChangeConfiguration"])
    watched = str(registered["workspace/didChangeWatchedFiles"])
    assert all(name in watched for name in ("warpwright.toml", "pyproject.toml", "compile_commands.json", "cuh"))
    with start_editor(VSCODE, tmp_path) as editor:
        editor.open("a.cu", "").diagnostics()
        assert editor.registrations == []
