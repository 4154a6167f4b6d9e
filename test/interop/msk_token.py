#!/usr/bin/env python3
"""Login tokens of MSK as aws-msk-iam-sasl-signer-python (the vendor's own) makes them, at fixed times: data for test/unit/aws/test_msk.

  msk_token.py write | check     test/data/aws/msk.tsv; needs the package of that name from PyPI

The User-Agent, which stands outside of the signature and names the library, is left out.
"""
import base64, datetime, os, sys
import botocore.auth, botocore.compat
import aws_msk_iam_sasl_signer.MSKAuthTokenProvider as signer
from botocore.credentials import CredentialProvider, Credentials

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "aws", "msk.tsv")
CASES = [
    ("us-east-1", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", 1700000000),
    ("eu-central-1", "ASIAEXAMPLE", "a/b+c=d", "FwoGZXIvYXdzEBYaDK/+=abc//==", 1764444444),
    ("ap-southeast-5", "A", "b", "", 951782400),
    ("us-gov-west-1", "AKIAGOV", "x" * 40, "t" * 900, 1893456000),
]


class Fixed(CredentialProvider):
    def __init__(self, c):
        self.c = c

    def load(self):
        return self.c


def made():
    lines = []
    for region, key, secret, token, at in CASES:
        now = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
        botocore.auth.get_current_datetime = lambda remove_tzinfo=True, now=now: now.replace(tzinfo=None) if remove_tzinfo else now
        text, expires = signer.generate_auth_token_from_credentials_provider(region, Fixed(Credentials(key, secret, token or None)))
        url = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        assert "=" not in text and url.count("&User-Agent=") == 1
        lines.append("\t".join([region, key, secret, token or "-", str(at), str(expires), url.split("&User-Agent=")[0]]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        open(PATH, "w").write(made())
    elif sys.argv[1:] == ["check"]:
        if open(PATH).read() != made():
            sys.exit("msk.tsv: the signer says something else today")
    else:
        sys.exit(__doc__)
