"""moto_server with the compare-and-swap of AWS: what a commit stands or falls with, and what moto 5.2.5 by itself leaves out or leaves to luck.

Glue UpdateTable: a VersionId that is not the table's gives ConcurrentModificationException; SkipArchive leaves no old version behind.
Glue CreateTable and UpdateTable, S3 Tables' UpdateTableMetadataLocation, S3 puts with a condition: one at a time, so that of two at the same moment one loses.
"""
import functools
import sys
import threading

from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse
from moto.s3.responses import S3Response
from moto.s3tables.responses import S3TablesResponse
from moto.server import main

ONE = threading.RLock()  # moto answers each request in a thread of its own


def alone(owner, name, when=lambda response: True):
    """Calls of owner.name wait for each other."""
    plain = getattr(owner, name)

    @functools.wraps(plain)
    def call(self, *args, **kw):
        if not when(self):
            return plain(self, *args, **kw)
        with ONE:
            return plain(self, *args, **kw)

    setattr(owner, name, call)


def update_table(self, plain=GlueResponse.update_table):
    asked = self.parameters
    table = self.glue_backend.get_table(asked["DatabaseName"], asked["TableInput"]["Name"])
    before = table.as_dict()["VersionId"]
    if asked.get("VersionId") not in (None, before):
        raise GlueClientError("ConcurrentModificationException", f"Update table failed due to concurrent modifications: the version is {before}.")
    answer = plain(self)
    if asked.get("SkipArchive"):
        table.delete_version(before)
    return answer


GlueResponse.update_table = update_table
alone(GlueResponse, "update_table")
alone(GlueResponse, "create_table")
alone(S3TablesResponse, "update_table_metadata_location")
alone(S3Response, "put_object", lambda r: r.headers.get("If-None-Match") or r.headers.get("If-Match"))
main(sys.argv[1:])
