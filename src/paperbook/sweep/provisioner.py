"""A jupyter_client provisioner whose kernel was forked before it was asked for."""

import json
import os
import signal
import time
from typing import Any

from jupyter_client.provisioning import LocalProvisioner

VARIABLE = "PAPERBOOK_FORKED_KERNEL"


class ForkedKernel:
    """The part of ``subprocess.Popen`` that LocalProvisioner uses, for our own forked child."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        while self.poll() is None:
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class ForkProvisioner(LocalProvisioner):
    """Hands the waiting process its connection file; a second kernel of a run is a plain one."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        waiting = os.environ.pop(VARIABLE, None)
        if waiting is None or kwargs.get("pass_fds"):
            return await super().launch_kernel(cmd, **kwargs)
        pid, writer = (int(number) for number in waiting.split(":"))
        env = {k: v for k, v in kwargs.get("env", os.environ).items() if k != VARIABLE}
        order = {"argv": _arguments(cmd), "env": env, "cwd": kwargs.get("cwd")}
        with os.fdopen(writer, "wb") as stream:
            stream.write(json.dumps(order).encode() + b"\n")
        self.process = ForkedKernel(pid)
        self.pid = self.pgid = pid
        return self.connection_info


def _arguments(cmd: list[str]) -> list[str]:
    """What follows ``python -m ipykernel_launcher``."""
    return cmd[cmd.index("ipykernel_launcher") + 1 :]
