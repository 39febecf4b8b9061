"""The methods that the server answers; each module registers its own."""

from __future__ import annotations

from warpwright.lsp import (
    code_action,
    code_action_resolve,
    code_lens,
    configuration,
    diagnostic,
    did_change,
    did_change_watched_files,
    did_close,
    did_open,
    did_save,
    doctor_command,
    execute_command,
    fix_command,
    hover,
    initialize,
    inlay_hint,
    inline_completion,
    profile_command,
    sass_command,
    verify_command,
)

METHODS = (
    initialize,
    configuration,
    did_open,
    did_change,
    did_save,
    did_close,
    did_change_watched_files,
    diagnostic,
    hover,
    code_action,
    code_action_resolve,
    code_lens,
    inlay_hint,
    execute_command,
    fix_command,
    profile_command,
    sass_command,
    verify_command,
    doctor_command,
    inline_completion,
)
