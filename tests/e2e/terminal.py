"""A berth command on a pseudo-terminal, as a person has it."""
import fcntl
import os
import pty
import signal
import struct
import termios

from patience import eventually
from server import berth_binary


class Terminal:
    """A berth command on a terminal of its own."""

    def __init__(self, environment, *words, size=(24, 80)):
        self.seen = b""
        pid, self.screen = pty.fork()
        if pid == 0:
            self.screen = 0
            self.resize(*size)
            os.execve(berth_binary(), ["berth", *words], environment)
        self.pid, self.code = pid, None
        os.set_blocking(self.screen, False)

    def resize(self, rows, columns):
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        try:
            while more := os.read(self.screen, 65536):
                self.seen += more
        except OSError:  # nothing now, or the terminal is closed
            pass

    def see(self, wanted):
        def holds():
            self.read()
            return wanted.encode() in self.seen
        eventually(lambda: f"the terminal shows {wanted!r}, but: {self.seen[-2000:]!r}", holds)

    def type(self, text):
        os.write(self.screen, text.encode())

    def ask(self, text, wanted):
        self.type(text + "\n")
        self.see(wanted)

    def end(self):
        """The exit code of the command."""
        def holds():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            return pid
        eventually(lambda: f"the command ends: {self.seen[-2000:]!r}", holds)
        self.read()
        os.close(self.screen)
        return self.code

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.end()
