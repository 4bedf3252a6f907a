"""Runs `longhaul serve` on a terminal of its own, which hangs up at SIGHUP.

    hangup.py COMMAND...

Prints the line that says where it listens. The exit code is the command's, or
128 and the number of the signal that ended it.
"""

import os
import pty
import signal
import sys

child, terminal = pty.fork()
if child == 0:
    # Whoever runs this may have made it deaf to the signal.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
# The kernel tells the command when the last hold on its terminal is let go.
signal.signal(signal.SIGHUP, lambda *_: os.close(terminal))
seen = b""
while b"longhaul listening" not in seen or not seen.endswith(b"\n"):
    seen += os.read(terminal, 65536)
lines = seen.decode().splitlines()
print(next(line for line in lines if line.startswith("longhaul listening")), flush=True)
_, status = os.waitpid(child, 0)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
