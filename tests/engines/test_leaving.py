"""The end of a process: it comes, although a thread that was given up keeps what the end would need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

GIVEN_UP = """
import _imp, atexit, builtins, sys, threading

class Client:
    def __del__(self):
        import wave  # what LiteLLM's clients do, while the interpreter is taken apart

def importing():
    _imp.acquire_lock()
    held.set()
    threading.Event().wait()

builtins.client, held = Client(), threading.Event()
threading.Thread(target=importing, daemon=True).start()
held.wait()
"""


def ended(code: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds)


def test_python_alone_would_wait_for_ever() -> None:
    """What the next tests rest on."""
    with pytest.raises(subprocess.TimeoutExpired):
        ended(GIVEN_UP, seconds=5)


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [("", 0, ""), ("sys.exit()", 0, ""), ("sys.exit(3)", 3, ""), ("sys.exit('no')", 1, "no"), ("1 / 0", 1, "division")],
)
def test_a_process_ends_as_it_would_have(end: str, status: int, said: str) -> None:
    code = "from polyhop.engines import leaving\nwith leaving.at_once():\n    import sys, atexit\n"
    code += "    atexit.register(print, 'registered')\n"
    code += "    leaving.importing.acquire()\n"  # that, too, nobody waits for
    code += "".join(f"    {line}\n" for line in f"{GIVEN_UP}\nprint('done', end='')\n{end}".splitlines())
    done = ended(code)
    assert (done.returncode, done.stdout) == (status, "doneregistered\n")
    assert said in done.stderr
    assert bool(done.stderr) is bool(said)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_status_outlives_an_interrupt_amid_an_eval(tmp_path: Path) -> None:
    """Of a module, Python alone would end by the signal, whatever became of it."""
    interrupted = "import signal, sys\n{}try: eval('signal.raise_signal(signal.SIGINT)')\n{}except KeyboardInterrupt: "
    (tmp_path / "alone.py").write_text(interrupted.format("", "") + "sys.exit(130)\n")
    (tmp_path / "ours.py").write_text(
        "from polyhop.engines import leaving\n"
        + interrupted.format("with leaving.at_once():\n    ", "    ")
        + "sys.exit(130)"
    )
    statuses = [subprocess.run([sys.executable, "-m", name], cwd=tmp_path).returncode for name in ("alone", "ours")]
    assert statuses == [-signal.SIGINT, 130]


def test_who_asks_a_model_at_the_end_is_not_kept_waiting() -> None:
    """What was registered before polyhop was imported comes after it."""
    code = "import atexit\ndef last():\n    with leaving.importing: print('asked')\n"
    done = ended(code + "atexit.register(last)\nfrom polyhop.engines import leaving\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "asked\n", "")


def test_an_import_of_litellm_is_waited_for() -> None:
    """It would keep the lock in a process that is not ours: a user's script that was interrupted."""
    code = """
import threading, time
from polyhop.engines import connection

def slow(feature):
    started.set()
    time.sleep(0.5)
    print("imported", flush=True)

started = threading.Event()
connection.get_litellm = slow
client = connection.Connection(connection.dspy.LM("replicate/x/y"))
threading.Thread(target=client.connect, daemon=True).start()
started.wait()
"""
    done = ended(code)
    assert (done.returncode, done.stdout) == (0, "imported\n")
