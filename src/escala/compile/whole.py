"""Compiled code that is optimised once, as a whole.

Numba optimises each function with all that it calls, and makes machine code of it, before it does so with its caller:
what lies deep is done again for each function above it. Here a function that only compiled code calls stays as it was
translated; it is optimised, and becomes machine code, within those that are called from Python. EASY's kernel is ready
in half the time, that of Slurm's rules in a third.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
from numba.core import caching, codegen, compiler, ir, itanium_mangler, typed_passes, types
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target

_ENVIRONMENT = "_ZN08NumbaEnv"  # how the names begin of what holds a function's Python objects, for its errors


class _Library(codegen.JITCodeLibrary):
    """Translated code, with the libraries of all that it calls, directly or not: those that are called stand before
    their callers."""

    def add_linking_library(self, library: Any) -> None:
        """Also what that library calls."""
        library._ensure_finalized()
        for part in (*(library._linking_libraries if isinstance(library, Inner) else ()), library):
            if part not in self._linking_libraries:
                self._linking_libraries.append(part)

    def environments(self) -> Iterator[tuple[str, Any]]:
        """The environments of its functions that there are, by name."""
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                found = lookup_environment(variable.name)
                if found is not None:
                    yield variable.name, found


def _bitcode(library: Any) -> bytes:
    """Of a library, to link it; written once."""
    if not hasattr(library, "bitcode"):
        library.bitcode = library._get_module_for_linking().as_bitcode()
    written: bytes = library.bitcode
    return written


class _NoCode:
    """Stands for the place of machine code, where there is none."""

    def set_env(self, _name: str, _environment: Any) -> None:
        """Set with the machine code of who calls the function."""


class Inner(_Library):
    """Code of a function that compiled code calls: neither optimised nor made machine code."""

    kept: dict[str, Inner] = {}  # noqa: RUF012
    """Those that were read from a cache, by the digest of their code."""
    needed: dict[str, Any] = {}  # noqa: RUF012
    """Environments that live as long as the code."""

    def finalize(self) -> None:
        """Nothing is added any more."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code."""
        return 0

    @property
    def codegen(self) -> Any:
        """What sets environments: not here."""
        return _NoCode()

    @classmethod
    def read(cls, made_by: Any, name: str, bitcode: bytes) -> Inner:
        """A library from its bitcode."""
        key = hashlib.sha256(bitcode).hexdigest()
        if key not in cls.kept:
            library = cls(made_by, name)
            library._final_module = library._shared_module = llvm.parse_bitcode(bitcode)
            library._finalized = True
            cls.kept[key] = library
        return cls.kept[key]


class Kept(Exception):
    """The code of a function is machine code in a file of its own: Numba makes none."""


class Entry(_Library):
    """Code of a function that Python calls, with all that it calls. returned: Numba's type of what it returns."""

    returned: Any = None
    keeping: Callable[[Any, str, Any], bool] | None = None
    """Tries to keep code without Numba, given LLVM's form of it, the function's name there, and what it returns."""

    def finalize(self) -> None:
        """Optimise all, and make machine code of it."""
        self._linking_libraries.reverse()  # callers first: what nobody calls so far would not be linked
        super().finalize()

    def get_pointer_to_function(self, name: str) -> Any:
        """Numba first asks for the way in which Python calls the function: then code is made."""
        self._called = name
        return super().get_pointer_to_function(name)

    def _finalize_final_module(self) -> None:
        name = self._own_name() if Entry.keeping is not None else ""
        if Entry.keeping is not None and name and Entry.keeping(self._final_module, name, self.returned):
            raise Kept
        super()._finalize_final_module()

    def _own_name(self) -> str:
        """Of the function itself within its code; empty where Numba names it otherwise."""
        names = [one.name for one in self._final_module.functions if one.name.startswith("_Z")]
        called = itanium_mangler.prepend_namespace
        return next((name for name in names if called(name, "cpython") == self._called), "")

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        made_by: Any = self._codegen
        for name, environment in self.environments():
            made_by.set_env(name, environment)


def _forwards(index: Any) -> Any:
    """The type of an index that counts from the beginning of an array."""
    if isinstance(index, types.BaseTuple):
        parts: Any = index
        return types.Tuple([_forwards(part) for part in parts])
    plain = isinstance(index, types.Integer) and not isinstance(index, types.Literal)
    return types.uintp if plain else index


@register_pass(mutates_CFG=False, analysis_only=True)
class _Forwards(AnalysisPass):
    """No index that is computed counts from the end of an array, as Python's negative ones do: to ask so at each access
    took a fifth of a replay's time. Checked bounds refuse one. Where sums may be reordered all stays as it was: what a
    kept agent decides may hang on their last bit."""

    _name = "escala_forwards"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the types by which items of arrays are read and written; nothing of the function itself changes."""
        if state.flags.fastmath:
            return False
        for block in state.func_ir.blocks.values():
            for access in (*block.find_exprs("getitem"), *block.find_insts(ir.SetItem)):
                signature = state.calltypes[access]
                array, index, *value = signature.args
                if isinstance(array, types.Array):
                    del state.calltypes[access]  # each is set once
                    state.calltypes[access] = signature.replace(args=(array, _forwards(index), *value))
        return False


def _pipeline(kind: type[_Library]) -> Any:
    """Numba's pipeline, with a library of another kind."""

    @register_pass(mutates_CFG=False, analysis_only=True)
    class Library(AnalysisPass):
        """Name the library that code goes to."""

        _name = f"escala_{kind.__name__.lower()}"

        def __init__(self) -> None:
            AnalysisPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            """Nothing of the function changes."""
            state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            state.library.returned = state.return_type
            return False

    class Pipeline(compiler.CompilerBase):
        """As Numba's own."""

        def define_pipelines(self) -> list[Any]:
            """One, without Python objects."""
            passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.add_pass_after(Library, typed_passes.AnnotateTypes)
            passes.add_pass_after(_Forwards, typed_passes.AnnotateTypes)
            passes.finalize()
            return [passes]

    return Pipeline


class _Reduced(caching.CompileResultCacheImpl):
    """How an inner function is kept on disk: bitcode of its own and of all that it calls."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Beside that of the same function, called from Python."""
        return super().get_filename_base(f"{fullname}.inner", abiflags)

    def reduce(self, result: Any) -> Any:
        """What is written."""
        libraries = (*result.library._linking_libraries, result.library)
        pieces = [(library.name, _bitcode(library)) for library in libraries]
        environments: dict[str, Any] = {}
        for library in libraries:
            if isinstance(library, Inner):
                environments.update(library.environments())
        result.fndesc.typemap = result.fndesc.calltypes = None
        return pieces, environments, result.fndesc, result.environment, result.signature

    def rebuild(self, target_context: Any, reduced: Any) -> Any:
        """From what was written."""
        pieces, environments, described, environment, signature = reduced
        *called, library = [Inner.read(target_context.codegen(), name, bitcode) for name, bitcode in pieces]
        library._linking_libraries = called
        library.needed = environments
        return compiler.compile_result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, described, environment),
            fndesc=described,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=[],
            referenced_envs=tuple(environments.values()),
        )


class EntryCache(caching.FunctionCache):
    """Functions on disk. What cannot be read is translated again; what cannot be written, as on a full disk, is not
    kept."""

    _impl_class: Any = caching.CompileResultCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """None where nothing is kept, or it is damaged."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was made, where that can be."""
        with contextlib.suppress(OSError):
            try:
                super().save_overload(sig, data)
            except OSError:
                raise
            except Exception:  # the index is damaged
                self.flush()
                super().save_overload(sig, data)


class Cache(EntryCache):
    """Inner functions on disk: a file for each kind of arguments. Numba's index of them would lose what two processes
    write at once, and give one the code of the other."""

    _impl_class = _Reduced

    def _name_of(self, key: Any) -> str:
        return f"{self._impl.filename_base}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"

    def has(self, given: tuple[Any, ...]) -> bool:
        """Is there code for these types of arguments?"""
        key = self._index_key(given, cpu_target.target_context.codegen())
        return os.path.exists(os.path.join(self.cache_path, self._name_of(key)))

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self._index_key(sig, target_context.codegen())
        try:
            kept, reduced = self._cache_file._load_data(self._name_of(key))
        except OSError:
            return None
        return self._impl.rebuild(target_context, reduced) if kept == key else None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if self._impl.check_cachable(data):
            self._impl.locator.ensure_cache_path()
            key = self._index_key(sig, data.codegen)
            self._cache_file._save_data(self._name_of(key), (key, self._impl.reduce(data)))


INNER, ENTRY = _pipeline(Inner), _pipeline(Entry)
