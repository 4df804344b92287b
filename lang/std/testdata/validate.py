"""Writes validate.jsonl: which values pydantic and the standard library accept for the types of the module std.

Run it in an environment with pydantic 2 and email-validator: python validate.py > validate.jsonl
"""
import datetime
import decimal
import ipaddress
import json
import uuid
import warnings

import pydantic

warnings.simplefilter("ignore")

VALUES = {
    "datetime.date": (datetime.date, ["2024-01-31", "2024-02-30", "2024-1-1", "20240101", "2024-01-01T00:00:00", "2024-01-01T00:00:01", "2024-01-01 00:00", "1704067200", "1704067201", "", "x", "2024-13-01", "0000-01-01", "0001-01-01", "9999-12-31", "2023-02-29", "2024-02-29", " 2024-01-01", "2024-01-01Z", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00+01:00", "-1", "1e3", "1704067200.0", "1704067200000"]),
    "datetime.time": (datetime.time, ["12:00", "12:00:00", "12:00:00.123456", "12:00:00.1234567", "12:00:00.1234567891", "24:00", "12:60", "1:00", "12", "", "12:00Z", "12:00+01:00", "12:00:60", "12:00:00,5", "86399", "86400", "-1", "12:00:00+0100", "12:00:00-23:59", "12:00:00+24:00", "x", "12:00 ", "3600.5"]),
    "datetime.datetime": (datetime.datetime, ["2024-01-01T00:00:00", "2024-01-01 00:00:00", "2024-01-01_00:00:00", "2024-01-01t00:00", "2024-01-01", "2024-01-01T00", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00z", "2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00+0100", "2024-01-01T00:00:00+01", "2024-01-01T24:00:00", "2024-01-01T00:00:00.123456789", "2024-01-01T00:00:00.1234567890", "1704067200", "1704067200.5", "-5", "x", "", "2024-01-01T00:00:00-23:59", "2024-01-01T00:00:00+24:00", "2024-02-30T00:00", "2024-01-01T00:00:00 Z", "2024-01-01X00:00:00", "1e10"]),
    "uuid.UUID": (uuid.UUID, ["550e8400-e29b-41d4-a716-446655440000", "550e8400e29b41d4a716446655440000", "{550e8400-e29b-41d4-a716-446655440000}", "urn:uuid:550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-A716-446655440000", "550e8400-e29b-41d4-a716-44665544000", "", "x", "550e8400-e29b41d4a716446655440000", "{550e8400e29b41d4a716446655440000}", "urn:uuid:550e8400e29b41d4a716446655440000", "URN:UUID:550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-44665544000g", "(550e8400-e29b-41d4-a716-446655440000)"]),
}
ADDRS = ["1.2.3.4", "01.2.3.4", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.4 ", "", "a.b.c.d", "1.2.3.-4", "1.2.3.+4", "1.2.3.0004", "::", "::1", "fe80::1%eth0", "fe80::1%", "1::2::3", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
         "1:2:3:4:5:6:7:8:9", "::ffff:1.2.3.4", "::1.2.3", "12345::", "g::", ":1", "1:", ":", ":::", "1.2.3.4/24", "1.2.3.0/24", "1.2.3.0/255.255.255.0", "1.2.3.0/0.0.0.255", "1.2.3.0/255.0.255.0", "1.2.3.0/33", "1.2.3.0/-1", "1.2.3.0/", "1.2.3.0/24/1", "0.0.0.0/0", "1.2.3.0/024",
         "2001:db8::/32", "2001:db8::1/32", "2001:db8::/129", "2001:db8::/ffff::", "2001:db8::1/128", "::/0", "fe80::1%eth0/64", "fe80::%eth0/64", "１.2.3.4", "1.2.3.4\n", "0.0.0.0/0.0.0.0", "255.255.255.255/255.255.255.255", "1.2.3.0/0.0.0.0", "1:2:3:4:5:6:1.2.3.4", "::1/+1", "1.2.3.4/32", "1:2:3:4:5:6:7:1.2.3.4", "fe80::1%a%b", "1.2.3.4/٣"]
for n in ["IPv4Address", "IPv4Interface", "IPv4Network", "IPv6Address", "IPv6Interface", "IPv6Network"]:
    VALUES["ipaddress." + n] = (getattr(ipaddress, n), ADDRS)
for n in ["IPvAnyAddress", "IPvAnyInterface", "IPvAnyNetwork"]:
    VALUES["pydantic." + n] = (getattr(pydantic, n), ADDRS)
EMAILS = ["a@b.com", "a.b@c.co.uk", "a..b@c.com", ".a@b.com", "a.@b.com", "a@b", "a@localhost", "a@b.local", "a@b.test", "a@example.com", "a@b.invalid", "a@b.123", "a@[1.2.3.4]", "a b@c.com", '"a b"@c.com', "Fred <a@b.com>", "Fred Bloggs <fred.bloggs@example.com>", "<a@b.com>", "a@b.com>", "a@-b.com", "a@b-.com",
          "a@b_c.com", "é@b.com", "a@é.com", "a@b..com", "a@.com", "a@b.com.", "@b.com", "a@", "a", "", "a" * 64 + "@b.com", "a" * 65 + "@b.com", "a@" + "b" * 63 + ".com", "a@" + "b" * 64 + ".com", "a!#$%&'*+/=?^_`{|}~-b@c.com", "a,b@c.com", "a@b@c.com", " a@b.com ", "A@B.COM", "a@xn--9ca.com", "a@b.c", "a@b.onion", "a@b.arpa", "a@x.example",
          "Fred a@b.com", '"Fred, B" <a@b.com>', "Fred, B <a@b.com>", "a(c)@b.com", "a@b.com\n", "Fred<a@b.com>", "a@1.com", "a@b.c1", "a@ab--cd.com"]
VALUES["pydantic.EmailStr"] = (pydantic.EmailStr, EMAILS)
VALUES["pydantic.NameEmail"] = (pydantic.NameEmail, EMAILS)
URLS = ["http://example.com", "https://example.com/a?b#c", "http://localhost:8080", "ftp://x.y/z", "file:///etc/passwd", "mailto:a@b.c", "http://", "http:///x", "//x", "x", "", "http:example.com", "http:/example.com", "HTTP://EXAMPLE.COM", "http://a b.com", "http://1.2.3.4", "http://[::1]:80/", "http://[::1", "http://a:99999", "http://a:x", "http://user:pw@h.com", "foo+bar://x", "1a://x",
        "http://é.com", "http://a..b", "http://exa mple", "http://a/b c", " http://a.com ", "http://a.com\n", "http://-a.com", "http://a_b.com", "redis://h", "http://256.1.1.1", "http://a:0", "http://a%20b", "http://?x", "javascript:alert(1)", "a:b", ":x", "http://a.com:80:80", "http://" + "a" * 2090, "http://a.com/" + "a" * 2090, "postgres://u:p@h:5432/d", "http://<x>", "http://a|b", "http://a\\b", "http://#", "data:,x", "http://a.com/%zz", "ws://x", "http://1.2.3", "http://0x1", "http://a^b"]
for n in ["AnyUrl", "AnyHttpUrl", "HttpUrl"]:
    VALUES["pydantic." + n] = (getattr(pydantic, n), URLS)
NUMBERS = [0, 1, -1, 5, 10**30, 0.5, -0.5, 0.0, -0.0, 2.0, True, False]
for n in ["NegativeInt", "PositiveInt", "NonNegativeInt", "NonPositiveInt", "NegativeFloat", "PositiveFloat", "NonNegativeFloat", "NonPositiveFloat"]:
    VALUES["pydantic." + n] = (getattr(pydantic, n), NUMBERS)

PARAMS = [
    ("pydantic.constr", {"min_length": 2}, ["a", "ab", ""]), ("pydantic.constr", {"max_length": 2}, ["a", "abc", "éé"]), ("pydantic.constr", {"strip_whitespace": True, "min_length": 1}, [" ", " a "]),
    ("pydantic.conint", {"ge": 0, "le": 4095}, [0, -1, 4095, 4096, 1.0, 1.5, True]), ("pydantic.conint", {"gt": 0, "lt": 5}, [0, 1, 5]), ("pydantic.conint", {"multiple_of": 3}, [9, 10]),
    ("pydantic.confloat", {"ge": 0.5, "lt": 2}, [0.5, 2.0, 1, 0.4]), ("pydantic.confloat", {"multiple_of": 0.5}, [1.5, 1.4]), ("pydantic.condecimal", {"gt": 0, "max_digits": 3, "decimal_places": 1}, [1.5, 100.5, 1.25, 0, 12]),
]


def enc(v):
    if isinstance(v, bool) or isinstance(v, str):
        return v
    if isinstance(v, int):
        return {"int": str(v)}
    return {"float": repr(v)}


def row(name, t, v, params):
    m = pydantic.create_model("m", value=(t, ...))
    try:
        m(value=v)
        ok = True
    except (pydantic.ValidationError, ValueError):
        ok = False
    print(json.dumps({"t": name, "v": enc(v), "p": params and {k: x if isinstance(x, bool) else enc(x) for k, x in params.items()}, "ok": ok}))


for name, (t, values) in VALUES.items():
    for v in values:
        row(name, t, v, None)
for name, params, values in PARAMS:
    t = getattr(pydantic, name.split(".")[1])(**params)
    for v in values:
        row(name, t, v, params)
