"""Machine code of entry points only, for the builder of packs.

Numba also emits the code of each part, with all that it calls, though nothing runs it: whatever calls a part has it as
LLVM's IR. Here code is emitted when its address is asked for, which is that of an entry point. Of a pack's time that is
a twelfth. Uses `numba.core.codegen`, which Numba does not document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import codegen

Library = codegen.JITCodeLibrary


def emit_late(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Emit code at the first call for an address; `put` replaces methods of Numba's classes."""
    emit, address, set_env = (
        Library._finalize_final_module,
        Library.get_pointer_to_function,
        codegen.JITCPUCodegen.set_env,
    )
    environments: dict[str, Any] = {}
    waiting: set[Any] = set()

    def finish(library: Any) -> None:
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        library._finalized = True
        waiting.add(library)

    def address_of(library: Any, name: str) -> int:
        library._ensure_finalized()
        if library in waiting and any(one.name == name for one in library.get_defined_functions()):
            waiting.discard(library)
            emit(library)
            for one in library._final_module.global_variables:  # those of parts are in it too
                if one.name in environments:
                    set_env(library.codegen, one.name, environments[one.name])
        return int(address(library, name))

    def keep_env(self: Any, name: str, environment: Any) -> None:
        environments[name] = environment
        if self._engine.is_symbol_defined(name):
            set_env(self, name, environment)

    put(Library, "_finalize_final_module", finish)
    put(Library, "get_pointer_to_function", address_of)
    put(codegen.JITCPUCodegen, "set_env", keep_env)
