"""Runs a command on a terminal of its own and types something into it.

    terminal.py WAIT_FOR KEYS COMMAND...

It has TERMINAL_SIZE rows and columns, or else 40 and 100.
The keys are typed once the output holds WAIT_FOR (nothing: never). Everything
that appears is printed, and the exit code is the command's.
"""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios

wait_for, keys, *command = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    # Whoever runs this in the background may have made it deaf to the keyboard.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    os.execvp(command[0], command)
rows, columns = os.environ.get("TERMINAL_SIZE", "40 100").split()
size = struct.pack("HHHH", int(rows), int(columns), 0, 0)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
seen = b""
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    seen += more
    if wait_for and wait_for.encode() in seen:
        os.write(terminal, keys.encode().decode("unicode_escape").encode())
        wait_for = ""
sys.stdout.buffer.write(seen)
sys.stdout.flush()
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
