"""Catalogs as PyIceberg sees them: tables by name through any catalog that frazil writes to, to read them and to commit to them as a stranger.

open_catalog(ADDRESS, **properties). ADDRESS is one of
    sqlite:///FILE            the SQL catalog; property catalog: its name there (c)
    postgresql://...          the same in PostgreSQL
    glue:URL                  Glue; URL of its endpoint
    rest:URL                  a REST catalog; properties token, credential, warehouse, ...
    s3tables:URL#ARN          the API of S3 Tables at URL, of the table bucket with that ARN
    hadoop:DIRECTORY          the filesystem catalog
S3 is reached as S3_ENDPOINT, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION say.
"""
import os
import re
import uuid

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import update_table_metadata


def aws():
    """Key, secret, region, session token."""
    e = os.environ.get
    return e("AWS_ACCESS_KEY_ID", "test"), e("AWS_SECRET_ACCESS_KEY", "test"), e("AWS_REGION", "us-east-1"), e("AWS_SESSION_TOKEN")


def aws_properties(service):
    key, secret, region, token = aws()
    found = {"access-key-id": key, "secret-access-key": secret, "region": region, "session-token": token}
    return {f"{service}.{k}": v for k, v in found.items() if v}


def s3_properties():
    endpoint = os.environ.get("S3_ENDPOINT", "http://127.0.0.1:25000")
    return {**aws_properties("s3"), "s3.endpoint": endpoint, "s3.path-style-access": "true"}


class PointerCatalog(NoopCatalog):
    """What the catalogs that PyIceberg lacks have in common: a pointer to the metadata file, moved only from where it was."""

    def find(self, namespace, name):
        """The location of the table's metadata, and what `move` needs to see that it is still that one."""
        raise NotImplementedError

    def move(self, namespace, name, seen, metadata, io, location):
        """Writes the metadata and moves the pointer; CommitFailedException when another one was faster."""
        raise NotImplementedError

    def load_table(self, identifier):
        return self.load(self.identifier_to_tuple(identifier))[0]

    def load(self, identifier):
        location, seen = self.find(identifier[-2], identifier[-1])
        io = load_file_io(self.properties, location)
        return Table(identifier[-2:], FromInputFile.table_metadata(io.new_input(location)), location, io, self), seen

    def commit_table(self, table, requirements, updates):
        now, seen = self.load(table.name())
        for r in requirements:
            r.validate(now.metadata)
        metadata = update_table_metadata(now.metadata, updates, False, now.metadata_location)
        location = self.move(*table.name()[-2:], seen, metadata, now.io, now.metadata_location)
        return CommitTableResponse(metadata=metadata, metadata_location=location)


class S3Tables(PointerCatalog):
    def __init__(self, url, arn, **properties):
        import boto3
        super().__init__("s3tables", **properties)
        key, secret, region, token = aws()
        self.api = boto3.client("s3tables", endpoint_url=url, region_name=region, aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token)
        self.arn = arn

    def find(self, namespace, name):
        try:
            found = self.api.get_table_metadata_location(tableBucketARN=self.arn, namespace=namespace, name=name)
        except self.api.exceptions.NotFoundException as e:
            raise NoSuchTableError(f"{namespace}.{name}") from e
        if "metadataLocation" not in found:
            raise NoSuchTableError(f"{namespace}.{name} has no metadata yet")
        return found["metadataLocation"], found["versionToken"]

    def move(self, namespace, name, seen, metadata, io, location):
        version = int(re.match(r"\d*", location.rsplit("/", 1)[1])[0] or 0) + 1
        new = f"{metadata.location.rstrip('/')}/metadata/{version:05}-{uuid.uuid4()}.metadata.json"
        ToOutputFile.table_metadata(metadata, io.new_output(new), overwrite=True)  # S3 Tables has no listing, by which others would look first
        try:
            self.api.update_table_metadata_location(tableBucketARN=self.arn, namespace=namespace, name=name, versionToken=seen, metadataLocation=new)
        except self.api.exceptions.ConflictException as e:
            raise CommitFailedException(str(e)) from e
        return new


class Hadoop(PointerCatalog):
    def __init__(self, directory, **properties):
        super().__init__("hadoop", **properties)
        self.directory = re.sub("^file:/*", "/", directory)

    def find(self, namespace, name):
        folder = f"{self.directory}/{namespace}/{name}/metadata"
        versions = [int(m[1]) for m in (re.fullmatch(r"v(\d+)\.metadata\.json", f) for f in (os.listdir(folder) if os.path.isdir(folder) else ())) if m]
        if not versions:
            raise NoSuchTableError(f"{namespace}.{name}")
        return f"file://{folder}/v{max(versions)}.metadata.json", max(versions)

    def move(self, namespace, name, seen, metadata, io, location):
        folder = f"{self.directory}/{namespace}/{name}/metadata"
        own, new = f"{folder}/{uuid.uuid4()}.metadata.json.tmp", f"{folder}/v{seen + 1}.metadata.json"
        with open(own, "w", encoding="utf-8") as out:
            out.write(metadata.model_dump_json())
        try:
            os.link(own, new)
        except FileExistsError as e:
            raise CommitFailedException(f"version {seen + 1} is there already") from e
        finally:
            os.remove(own)
        with open(f"{folder}/version-hint.text", "w", encoding="utf-8") as out:
            out.write(str(seen + 1))
        return f"file://{new}"


def open_catalog(address, **properties):
    kind, _, rest = address.partition(":")
    s3 = {**s3_properties(), **properties}
    if kind == "sqlite" or kind.startswith("postgres"):
        uri = address.replace("postgresql://", "postgresql+psycopg2://", 1)
        return load_catalog(s3.pop("catalog", "c"), type="sql", **{"uri": uri, "warehouse": "/", **s3})
    if kind == "glue":
        return load_catalog("glue", type="glue", **{"glue.endpoint": rest, **aws_properties("glue"), **s3})
    if kind == "rest":
        return load_catalog("rest", type="rest", **{"uri": rest, **s3})
    if kind == "s3tables":
        return S3Tables(*rest.split("#", 1), **s3)
    if kind == "hadoop":
        return Hadoop(rest, **s3)
    raise ValueError(f"no catalog is called {kind}")
