"""Known vulnerabilities of what is installed beside this Python, by pip-audit; `make check` runs it.

Exit code 1 when there are some. What could not be looked up, such as without a network, is said, and fails nothing.
"""

import json
import subprocess
import sys

SECONDS = 120


def report() -> list[dict]:
    """What pip-audit says of each package; an empty list, and a line on stderr, when it could not ask."""
    command = [sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner", "off", "--format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
        return json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        reason = f"no answer within {SECONDS} seconds"
    except (ValueError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1][:200]
    print(f"audit: could not look for known vulnerabilities: {reason}", file=sys.stderr)
    return []


def main() -> int:
    """Say what was found, and what was not looked up."""
    packages = report()
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    found = [(package, each) for package in packages for each in package.get("vulns", ())]
    for package, each in found:
        mended = ", ".join(each.get("fix_versions", ())) or "no version"
        print(f"audit: {package['name']} {package['version']}: {each['id']}, mended in {mended}", file=sys.stderr)
    if packages:
        print(f"audit: {len(packages) - len(skipped)} packages looked up, {len(skipped)} could not be")
    return 1 if found else 0


sys.exit(main())
