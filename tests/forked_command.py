"""The command in processes forked from one that has imported everything.

A process of its own takes seconds to start, nearly all of them for imports. A fork has streams,
signals, an exit code and an end of its own too. This file is also the program that forks.
"""

import gc
import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NO_READER = "|"
"""In place of a path: a pipe that nobody reads."""


class Forking:
    """The program in the file of a class, which forks as it is asked."""

    def __init__(self):
        program = [sys.executable, inspect.getfile(type(self))]
        self._program = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self):
        self._program.communicate()

    def _ask(self, request):
        self._program.stdin.write(json.dumps(request) + "\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline())


class Forks(Forking):
    """Calls of the command in forks of one process."""

    def start(self, args, streams, *, writes_slowly=False):
        """Start a call and return its process id; slow ones take a minute to write a block."""
        return self._ask({"args": args, "streams": streams, "writes_slowly": writes_slowly})

    def wait(self, process):
        return self._ask({"wait": process})

    def run(self, args, **streams):
        """Return exit code, output and errors of a call; `streams` replace what is read here."""
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            out.touch()
            err.touch()
            given = {"stdin": os.devnull, "stdout": str(out), "stderr": str(err)} | streams
            code = self.wait(self.start(args, (given["stdin"], given["stdout"], given["stderr"])))
            return code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")


def serve():
    """Answer requests; return in each fork, with what it has to do."""
    with os.fdopen(os.dup(1), "w", buffering=1) as replies:
        for line in iter(sys.stdin.readline, ""):
            request = json.loads(line)
            if "wait" in request:
                _, status = os.waitpid(request["wait"], 0)
                print(os.waitstatus_to_exitcode(status), file=replies)
                continue
            process = os.fork()
            if process == 0:
                return request
            print(process, file=replies)
    raise SystemExit


def connect(streams):
    """Replace the standard streams as a shell does before a program starts."""
    for number, (name, path) in enumerate(zip(("stdin", "stdout", "stderr"), streams, strict=True)):
        if path is None:
            os.close(number)
            setattr(sys, name, None)
        else:
            handle = pipe_without_reader() if path == NO_READER else opened(path, number)
            os.dup2(handle, number)
            os.close(handle)


def opened(path, number):
    return os.open(path, os.O_WRONLY if number else os.O_RDONLY)


def pipe_without_reader():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def write_slowly():
    import time

    from evenhand.tables import TableWriter

    def wait(writer, frame):
        print("writing", flush=True)
        time.sleep(60)

    TableWriter.write = wait


def main():
    # everything that an audit imports and computes once; threads of a reader end in a fork
    import numpy as np

    import evenhand.scale
    import evenhand.store  # noqa: F401
    from evenhand import Forecast, audit
    from evenhand.cli import main as command

    zeros = np.zeros(30)
    audit(
        Forecast.from_normal(zeros, zeros + 1), y=np.linspace(-2, 2, 30), random_state=0
    ).summary()
    gc.freeze()  # forks share what is there, and need not look at it again
    request = serve()
    connect(request["streams"])
    if request["writes_slowly"]:
        write_slowly()
    sys.argv = ["evenhand", *request["args"]]
    command()


if __name__ == "__main__":
    main()
