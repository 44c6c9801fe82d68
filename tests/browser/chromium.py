"""The browser that the tests drive: find one on this machine, or install one.

`python tests/browser/chromium.py` prints the browser's path, after installing one if there is none: on Debian as
root from Debian's packages (Playwright's own download needs a host that closed networks do not reach), elsewhere
through Playwright. The tests take what `find` finds; `CHROMIUM=/path` chooses another one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# The first is the same engine without the window around it, what Playwright takes too when no window is wanted: a page
# opens with half the work.
SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find() -> str | None:
    """Path of a Chromium or Chrome: `CHROMIUM`, the PATH, a Mac's applications, then Playwright's own."""
    if chosen := os.environ.get("CHROMIUM"):
        return chosen
    for name in NAMES:
        if path := shutil.which(name):
            return path
    return next((path for path in MAC if Path(path).exists()), None) or _playwrights()


def install() -> str:
    """Install a browser and return its path.

    Raises:
        SystemExit: no way worked; the message says what to do by hand.
    """
    ways: list[Callable[[], None]] = [_from_playwright]
    if _is_debian() and os.geteuid() == 0:
        ways.insert(0, _from_debian)
    for way in ways:
        try:
            way()
        except (OSError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"{way.__name__}: {error}\n")
        if path := find():
            return path
    raise SystemExit("no browser could be installed: install Chromium or Chrome, or set CHROMIUM=/path/to/it")


def _playwrights() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _is_debian() -> bool:
    release = Path("/etc/os-release")
    return release.exists() and "\nID=debian" in "\n" + release.read_text()


def _from_debian() -> None:
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], check=True, env=quiet)
    # Without recommended packages no font comes along, and pages without letters have the wrong sizes.
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "fonts-liberation"]
    try:
        subprocess.run([*install, SHELL], check=True, env=quiet)
    except subprocess.CalledProcessError:  # older releases do not have it
        subprocess.run([*install, "chromium"], check=True, env=quiet)


def _from_playwright() -> None:
    deps = ["--with-deps"] if sys.platform == "linux" else []
    subprocess.run([sys.executable, "-m", "playwright", "install", *deps, "chromium"], check=True)


if __name__ == "__main__":
    sys.stdout.write(f"{find() or install()}\n")
