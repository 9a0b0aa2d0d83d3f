#!/usr/bin/env python3
"""Runs a command and tells what it used.

    measure.py FILE COMMAND...

Writes to FILE, as JSON: code (its exit code), resident_kib_max (VmHWM at its end), user_seconds, system_seconds, wall_seconds.
Ends with the command's exit code.
"""

import json
import os
import sys
import time


def main():
    begun = time.monotonic()
    child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"code": code, "resident_kib_max": used.ru_maxrss, "user_seconds": used.ru_utime, "system_seconds": used.ru_stime,
                   "wall_seconds": time.monotonic() - begun}, file)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
