"""No engine outlives the process that started it, however that one ends."""

import os
import threading
import time


def end_with_parent(every_s: float = 1.0) -> None:
    """Have this process end soon after its parent has; looks every so many seconds.

    Not by Linux's signal at a parent's death: that is sent when the thread ends that started us.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every_s)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
