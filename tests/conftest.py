"""Tests run strictly: shapes and types are checked (by `make test`), rank promotion and warnings are errors.

What was compiled once is not compiled again: programs lie in `.pytest_cache`, where both workers, what they start, and
the next run find them. A fresh clone has none. DISCRAX_TESTS_COMPILED names another folder.

Most of the time goes into compiling. Programs are compiled with little optimisation and by XLA's older writer of fused
operations, which takes less than a third of the time. That writer is not always right: by it chromatic Gibbs on a
sparse chain of 140 sites leaves its law, which it keeps as users compile it (`invariance/test_many_sites.py`). A module
that needs the newer writer, or compares programs bit for bit which only optimisation makes alike, says
`pytestmark = pytest.mark.optimised`: it is compiled as users' programs are. One that runs for longer than it compiles
says `pytestmark = pytest.mark.runs_long`: somewhat optimised, by the newer writer. The choice is the module's, since
its tests share fixtures, and holds for the programs that its tests start.

What a test costs depends on what others compiled before it, so many slow ones are found by measuring: `slow.txt` lists
them.
"""

import gc
import os
import signal
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

from discrax.core.program_cache import shrink

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what it puts into the background deaf to Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

_COMPILED = "DISCRAX_TESTS_COMPILED"
_LARGEST = 2 * 2**30  # bytes of programs that are kept

_ROOMS = ["core", "data", "targets", "samplers", "adaptation", "curvature", "exact", "diagnostics", "sampling"]
_ROOMS += ["problems", "solving", "learn"]

_PLAIN = "JAX_DISABLE_MOST_OPTIMIZATIONS"
_FLAGS = os.environ.get("XLA_FLAGS", "")

# Fused operations by XLA's older writer, and all of a program by one thread.
_CHEAP = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
_SOMEWHAT = {"xla_cpu_parallel_codegen_split_count": 1, "xla_backend_optimization_level": 1}
_KINDS = {"optimised": {}, "runs_long": _SOMEWHAT, "plain": _CHEAP}
_kind = ""

# Whoever imports discrax first gets the checks; the process that only hands out tests to workers never does. Three
# workers of `make test-slow` would spend 24 seconds on making them, of functions that `make test` checks.
if os.environ.get("DISCRAX_TESTS_TYPES") != "none":
    install_import_hook([f"discrax.{room}" for room in _ROOMS], "strict_types.check")


def pytest_configure(config):
    if _COMPILED not in os.environ:
        folder = config.rootpath / ".pytest_cache" / "d" / "compiled"
        folder.mkdir(parents=True, exist_ok=True)
        shrink(folder, _LARGEST)
        os.environ[_COMPILED] = str(folder)  # workers inherit it
    # And so do programs that tests start.
    os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ[_COMPILED]
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    os.environ["NETKET_ENABLE_X64"] = "0"  # else it turns double precision on for everyone when it is imported
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        import jax

        jax.config.update("jax_numpy_rank_promotion", "raise")
        gc.set_threshold(20_000)  # JAX makes many objects, few of them in cycles
        jax.devices()  # reads XLA_FLAGS, which are then those of programs that tests start
        _compile_cheaply()


def _compile_cheaply():
    """Programs get what `_KINDS` says of their module, by JAX's own hand: XLA_FLAGS hold for all."""
    from jax._src import compiler

    plain = compiler.get_compile_options

    def cheap(*arguments, env_options_overrides=None, **keywords):
        overrides = _KINDS.get(_kind, {}) | (env_options_overrides or {})
        return plain(*arguments, env_options_overrides=overrides or None, **keywords)

    compiler.get_compile_options = cheap


def pytest_collection_modifyitems(config, items):
    here = Path(__file__).parent
    listed = set((here / "slow.txt").read_text().splitlines())
    for item in items:
        name = f"{item.path.relative_to(here).as_posix()}::{item.nodeid.partition('::')[2]}"
        if name in listed:
            listed.remove(name)
            item.add_marker("slow")
        if wrong := [mark.name for mark in item.own_markers if mark.name in _KINDS]:
            raise pytest.UsageError(f"{name} is marked as {wrong[0]}, but modules are, by `pytestmark`")
    items.sort(key=_kind_of)  # a change of kind forgets all programs
    if listed and config.args == config.getini("testpaths") and not config.option.keyword:
        said = f"tests/slow.txt names tests that do not exist: {', '.join(sorted(listed))}"
        if hasattr(config, "workerinput"):  # of a worker nobody sees an error: all of its tests say it
            items[:] = [_Saying.from_parent(items[0].parent, name="slow.txt", said=said)]
        else:
            raise pytest.UsageError(said)


def _kind_of(item):
    return next((name for name in _KINDS if item.get_closest_marker(name)), "plain")


class _Saying(pytest.Item):
    """A test that fails with a sentence."""

    def __init__(self, *, said, **rest):
        super().__init__(**rest)
        self.said = said

    def runtest(self):
        pytest.fail(self.said, pytrace=False)


def pytest_runtest_setup(item):
    """Before any fixture of the test is made."""
    import jax

    from discrax.core import programs

    global _kind
    kind = _kind_of(item)
    if kind != _kind:
        _kind = kind
        jax.config.update("jax_disable_most_optimizations", kind != "optimised")
        jax.clear_caches()  # no program is used by modules of two kinds
        programs._programs.clear()
        programs._executables.clear()
        # For programs that the test starts.
        os.environ[_PLAIN] = str(int(kind == "plain"))
        os.environ["XLA_FLAGS"] = " ".join(
            [_FLAGS, *(f"--{name}={int(value)}" for name, value in _KINDS[kind].items())]
        )
