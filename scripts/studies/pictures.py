"""Take the pictures of the README: the serve page and the report, in Chromium. Run
`python -m polyhop.scripts.studies.pictures`.

They show the sample and the embedded engine, so that everybody gets the same.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import sleep

import httpx
from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parents[2] / "docs" / "images"
POLYHOP = str(Path(sys.executable).with_name("polyhop"))
PORT = 8979
QUESTION = "Which actress did the author of The Cherry Orchard marry?"


def page_of_a_question(browser: Browser) -> None:
    address = f"http://127.0.0.1:{PORT}"
    server = subprocess.Popen([POLYHOP, "serve", "--index", "sample", "--port", str(PORT)], stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                httpx.get(f"{address}/health")
                break
            except httpx.ConnectError:
                assert server.poll() is None, "the server has ended"
                sleep(0.2)
        page = browser.new_page(viewport={"width": 1180, "height": 830}, reduced_motion="reduce")
        page.goto(address)
        page.wait_for_selector("#program option", state="attached")
        page.fill("#question", QUESTION)
        page.keyboard.press("Enter")
        page.wait_for_selector(".run.answered")
        page.mouse.move(0, 0)
        page.screenshot(path=IMAGES / "page.png")
    finally:
        server.terminate()
        server.wait()


def page_of_a_report(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for program in ("polyhop", "naive"):
            command = [POLYHOP, "evaluate", "--program", program, "--out", program]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([POLYHOP, "report", "polyhop", "naive", "--out", "report.html"], cwd=folder, check=True)
        page = browser.new_page(viewport={"width": 1180, "height": 710})
        page.goto(Path(folder, "report.html").as_uri())
        page.screenshot(path=IMAGES / "report.png")


def main() -> None:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page_of_a_question(browser)
        page_of_a_report(browser)
        browser.close()


if __name__ == "__main__":
    main()
