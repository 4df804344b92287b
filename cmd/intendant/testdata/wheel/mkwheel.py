"""Makes a wheel of a module or a package: mkwheel.py DIRECTORY NAME VERSION [REQUIREMENT...] [model=FILE]."""

import base64
import hashlib
import sys
import zipfile

out, name, version, *rest = sys.argv[1:]
dist = name.replace("-", "_")
files = {}
if name.startswith("inmanta-module-"):
    pkg = "inmanta_plugins/" + name[len("inmanta-module-") :].replace("-", "_")
    model = [r[len("model=") :] for r in rest if r.startswith("model=")]
    files[pkg + "/__init__.py"] = ""
    files[pkg + "/setup.cfg"] = f"[metadata]\nname = {name}\nversion = {version}\nlicense = MIT\n"
    files[pkg + "/model/_init.cf"] = open(model[0]).read() if model else ""
else:
    files[dist + ".py"] = f"version = {version!r}\n"
info = f"{dist}-{version}.dist-info"
requires = "".join(f"Requires-Dist: {r}\n" for r in rest if not r.startswith("model="))
files[info + "/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
files[info + "/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


record = "".join(f"{n},sha256={digest(t)},{len(t.encode())}\n" for n, t in files.items())
files[info + "/RECORD"] = record + info + "/RECORD,,\n"
with zipfile.ZipFile(f"{out}/{dist}-{version}-py3-none-any.whl", "w") as z:
    for n, t in files.items():
        z.writestr(zipfile.ZipInfo(n, (2020, 1, 1, 0, 0, 0)), t)
