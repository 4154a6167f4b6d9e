#!/usr/bin/env python3
"""What botocore makes of profile files and of endpoints, as data for test/unit/aws (test_profile, test_endpoint).

  aws_golden.py write    writes test/data/aws/profiles.json and endpoints.tsv anew
  aws_golden.py check    compares them with what the installed botocore says today

Cases whose answer here is another one on purpose carry "ours" with the reason; the unit test takes that instead.
"""
import json, os, sys, tempfile
import botocore, botocore.session, botocore.exceptions
from botocore.config import Config

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "aws")

K = "aws_access_key_id = {0}\naws_secret_access_key = {1}\n"
CASES = [
    ("plain", "[default]\nregion = us-west-2\noutput=json\n", "[default]\n" + K.format("AKIADEFAULT", "s/+=1"), "default"),
    ("named", "[profile home-aws]\nregion = eu-central-1\n", "[home-aws]\n" + K.format("AKIAHOME", "x"), "home-aws"),
    ("config only", "[profile a]\n" + K.format("AKIAA", "sa") + "aws_session_token = tok\n", "", "a"),
    ("credentials beat config", "[profile a]\n" + K.format("AKIAOLD", "old") + "region = eu-west-3\n", "[a]\n" + K.format("AKIANEW", "new"), "a"),
    ("session token", "", "[default]\n" + K.format("ASIA", "s") + "aws_session_token = FwoG//==\n", "default"),
    ("key case", "[default]\nREGION = us-east-2\nAws_Access_Key_Id = AKIAC\naws_secret_ACCESS_key = c\n", "", "default"),
    ("section case", "[profile Dev]\nregion = us-east-1\n[profile dev]\nregion = us-east-2\n", "", "Dev"),
    ("section without prefix is none", "[dev]\nregion = us-east-1\n[default]\nregion = us-east-2\n", "", "default"),
    ("prefix in credentials is none", "[default]\nregion = us-east-2\n", "[profile dev]\n" + K.format("A", "b") + "[default]\n" + K.format("C", "d"), "default"),
    ("comments", "# top\n; other\n[default]\n# region = no\nregion = us-east-1\n;output = text\n", "", "default"),
    ("indented comments", "[default]\nregion = us-east-1\n  # about\n  ; more\noutput = json\n", "", "default"),
    ("indented properties", "[default]\n  region = us-east-1\n  output = json\n[profile b]\n\tregion = us-east-2\n\toutput = text\n", "", "b"),
    ("indented header", "  [default]\n  region = us-east-1\n", "", "default"),
    ("nested", "[default]\ns3 =\n  max_concurrent_requests = 20\n  addressing_style = path\nregion = us-east-1\n", "", "default"),
    ("nested with blank line", "[default]\ns3 =\n  a = 1\n\n  b = 2\nregion = us-east-1\n", "", "default"),
    ("continuation", "[default]\ncredential_process = /bin/echo\n  more\nregion = us-east-1\n", "", "default"),
    ("colon", "[default]\nregion: us-east-1\nendpoint_url = http://127.0.0.1:5000\n", "", "default"),
    ("blanks around", "[default]\n\tregion\t=\t us-east-1 \t\noutput =json  \n", "", "default"),
    ("blanks in header", "[ profile   a ]\nregion = us-east-1\n[profile\tb]\nregion = us-east-2\n", "", "b"),
    ("quoted name", "[profile \"my team\"]\nregion = us-east-1\n[profile 'x y z']\nregion = us-east-2\n", "", "my team"),
    ("name with signs", "[profile a.b/c@d_e-f%g+h]\nregion = us-east-1\n", "", "a.b/c@d_e-f%g+h"),
    ("name of two words", "[profile two words]\nregion = us-east-1\n[default]\nregion = us-east-2\n", "", "default"),
    ("name beginning with profile", "[profile profile]\nregion = us-east-1\n", "", "profile"),
    ("header with comment", "[profile a] # mine\nregion = us-east-1\n[profile b];x\nregion = us-east-2\n", "", "b"),
    ("equals in value", "[default]\naws_access_key_id = A=B=\naws_secret_access_key = ==\n", "", "default"),
    ("hash in value", "[default]\naws_access_key_id = A#B;C\naws_secret_access_key = x#\n", "", "default"),
    ("empty value", "[default]\nregion =\noutput = json\n", "", "default"),
    ("crlf", "[default]\r\nregion = us-east-1\r\noutput = json\r\n", "[default]\r\naws_access_key_id = A\r\naws_secret_access_key = b\r\n", "default"),
    ("no line feed at the end", "[default]\nregion = us-east-1", "", "default"),
    ("utf-8", "[profile caf\u00e9]\nregion = us-east-1\nnote = \u4f60\u597d\n", "", "caf\u00e9"),
    ("sso session", "[profile s]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = R\n[sso-session corp]\nsso_region = us-east-1\nsso_start_url = https://x/start\n", "", "s"),
    ("services", "[profile s]\nservices = local\nregion = us-east-1\n[services local]\nglue =\n  endpoint_url = http://127.0.0.1:1\ns3 =\n  endpoint_url = http://127.0.0.1:2\n", "", "s"),
    ("other sections", "[plugins]\nx = y\n[preview]\n  a = b\n[default]\nregion = us-east-1\n[sso-session]\nz = 1\n", "", "default"),
    ("percent", "[default]\nregion = us-east-1\nx = %(region)s %%\n", "", "default"),
    ("header without end", "[default\nregion = us-east-1\n", "", "default"),
    ("property without section", "region = us-east-1\n", "", "default"),
    ("no equals sign", "[default]\nregion\n", "", "default"),
    ("no name", "[default]\n= us-east-1\n", "", "default"),
    ("secret missing", "[default]\naws_access_key_id = A\n", "", "default"),
    ("missing profile", "[default]\nregion = us-east-1\n", "", "nope"),
]
# name -> (why, what the properties of the profile are here)
OURS = {
    "header with comment": ("botocore's parser takes ']' as the end, too; kept to see it", None),
    "comment behind a value": ("the SDK for Java cuts it off", {"region": "us-east-1"}),
    "section twice": ("the SDK for Java merges them, botocore refuses the file", {"region": "us-east-1", "output": "json"}),
    "property twice": ("the SDK for Java takes the last, botocore refuses the file", {"region": "us-east-2"}),
    "profile default beats default": ("so the SDK for Java; botocore takes the later", {"region": "us-east-1"}),
    "profile default beats default, later": ("the same the other way round", {"region": "us-east-1"}),
    "byte order mark": ("botocore refuses the file; editors of Windows write one", {"region": "us-east-1"}),
}
CASES += [
    ("comment behind a value", "[default]\nregion = us-east-1 # here\n", "", "default"),
    ("section twice", "[profile a]\nregion = us-east-1\n[profile b]\nx = 1\n[profile a]\noutput = json\n", "", "a"),
    ("property twice", "[default]\nregion = us-east-1\nregion = us-east-2\n", "", "default"),
    ("profile default beats default", "[profile default]\nregion = us-east-1\n[default]\nregion = us-east-2\noutput = json\n", "", "default"),
    ("profile default beats default, later", "[default]\nregion = us-east-2\noutput = json\n[profile default]\nregion = us-east-1\n", "", "default"),
    ("byte order mark", "\ufeff[default]\nregion = us-east-1\n", "", "default"),
]


def ask(config, credentials, profile, tmp):
    """(all sections as botocore reads them or None if it refuses, static credentials or None or an error)."""
    for name, text in (("config", config), ("credentials", credentials)):
        with open(os.path.join(tmp, name), "w", newline="", encoding="utf-8") as f:
            f.write(text)
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    env.update(AWS_CONFIG_FILE=os.path.join(tmp, "config"), AWS_SHARED_CREDENTIALS_FILE=os.path.join(tmp, "credentials"), AWS_EC2_METADATA_DISABLED="true", HOME=tmp)
    os.environ.clear()
    os.environ.update(env)
    try:
        s = botocore.session.Session(profile=profile)
        full = s.full_config
    except botocore.exceptions.BotoCoreError:
        return None
    out = {"profiles": full["profiles"], "sso_sessions": full.get("sso_sessions", {}), "services": full.get("services", {}), "known": profile in full["profiles"]}
    p = full["profiles"].get(profile, {})
    if "aws_access_key_id" in p or "aws_secret_access_key" in p:
        try:
            c = s.get_credentials()
            out["credentials"] = [c.access_key, c.secret_key, c.token]
        except botocore.exceptions.BotoCoreError as e:
            out["credentials"] = type(e).__name__
    return out


def profiles():
    cases = []
    with tempfile.TemporaryDirectory() as tmp:
        for name, config, credentials, profile in CASES:
            c = {"name": name, "config": config, "credentials": credentials, "profile": profile, "botocore": ask(config, credentials, profile, tmp)}
            if name in OURS and OURS[name][1] is not None:
                c["why"], c["ours"] = OURS[name]
            cases.append(c)
    return json.dumps(cases, indent=1, ensure_ascii=True) + "\n"


SERVICES = ["glue", "s3", "s3tables", "sts", "logs", "lakeformation", "kms", "athena", "sso", "sso-oidc"]
REGIONS = ["us-east-1", "eu-central-1", "ap-southeast-5", "il-central-1", "mx-central-1", "us-gov-west-1", "us-gov-east-1", "cn-north-1", "cn-northwest-1",
           "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1", "eusc-de-east-1"]


def endpoints():
    s = botocore.session.Session()
    lines = []
    for service in SERVICES:
        c = s.create_client(service, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b", config=Config())
        for region in REGIONS:
            for fips in (False, True):
                for dual in (False, True):
                    try:
                        url = c._ruleset_resolver._provider.resolve_endpoint(Region=region, UseFIPS=fips, UseDualStack=dual).url
                    except botocore.exceptions.BotoCoreError:
                        url = "-"
                    lines.append("\t".join([service, region, str(fips).lower(), str(dual).lower(), s.get_partition_for_region(region), url]))
    return "\n".join(lines) + "\n"


def main():
    bad = 0
    for name, text in (("profiles.json", profiles()), ("endpoints.tsv", endpoints())):
        path = os.path.join(HERE, name)
        if sys.argv[1:] == ["write"]:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        elif open(path, encoding="utf-8").read() != text:
            print(f"{name}: botocore {botocore.__version__} says something else today")
            bad = 1
    return bad


if __name__ == "__main__":
    if sys.argv[1:] not in (["write"], ["check"]):
        sys.exit(__doc__)
    sys.exit(main())
