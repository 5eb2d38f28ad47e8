"""A server that forks a process for each `tiedtools` command, which saves half a second of imports per command.

`python tests/helpers/forkserver.py SOCKET` imports the libraries once, prints a line, and forks for each command that
a CLIENT script sends.
"""

import json
import os
import random
import signal
import socket
import sys

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(9) or 255))
"""

# Options that make a run short; appended, because the last occurrence of an option wins.
SHORTER = {
    "w2v": ["-iter", "1"], "lstm": ["--epochs", "1"], "nmt": ["--epochs", "1"], "translate": ["--max-length", "3"],
    "rnnlm": ["-max-iter", "1"],
}  # fmt: skip


def shortened(arguments):
    if arguments[:2] == ["data", "get"]:
        return ["data", "path", *arguments[2:]]  # finds files in TIEDTOOLS_DATA
    if not arguments or "--force" in arguments:
        return arguments
    return arguments + SHORTER.get(arguments[0], [])


def serve(connection):
    """In a child process, run the command received over the connection, and send back its exit status."""
    from tiedtools.__main__ import main

    message, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while more := connection.recv(1 << 20):
        message += more
    arguments, folder, environment = json.loads(message)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = shortened(arguments)
    try:
        main()
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    for stream in sys.stdout, sys.stderr:
        if stream:
            stream.flush()
    connection.sendall(str(status).encode())


def load():
    """Import and compile what the commands use, by running small examples."""
    import tempfile

    from click.testing import CliRunner

    from tiedtools.cli import cli

    with tempfile.TemporaryDirectory() as folder:
        text, vectors, model = (os.path.join(folder, name) for name in ("text", "vectors", "model.npz"))
        with open(text, "w") as file:
            file.write("a b c d e f\n" * 300)
        for command in (
            ["w2v", "-iter", "1", "-output", vectors, text],
            ["w2v", "-iter", "1", "--tie-signs", "-output", vectors, text],
            ["w2v", "-iter", "1", "--tie-linear", "-output", vectors, text],
            ["lstm", "--epochs", "1", "--save-model", model, "-output", vectors, text],
            ["rnnlm", "--doc-dim", "2", "-max-iter", "1", "-output", vectors, text],
            ["nmt", "--source", text, "--target", text, "--epochs", "1", "--size", "8", "-output", vectors],
            ["nn", vectors, "a"],
            ["ppl", model, text],
        ):
            result = CliRunner().invoke(cli, command, prog_name="tiedtools")
            assert result.exit_code == 0, result.output


def main(address):
    tests = os.getppid()
    # Run on one core: threads that wait for each other are slow on a busy machine.
    os.sched_setaffinity(0, [random.choice([*os.sched_getaffinity(0)])])
    load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        listening.settimeout(10)
        print("ready", flush=True)
        while os.getppid() == tests:  # until the tests end or are killed
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            if not os.fork():
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                try:
                    serve(connection)
                finally:
                    os._exit(0)
            connection.close()


if __name__ == "__main__":
    main(sys.argv[1])
