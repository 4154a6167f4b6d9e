"""The catalogs of the commit matrix: how frazil and PyIceberg reach each, which of its requests make a commit, and what its refusals look like; and Lake, the
harness's Tables in such a catalog.

`commit` selects the request that decides, `swap` the first one of the commit that the service sees, `load` the one by which the table is loaded.
A kind without a proxy has its faults from the fault points of the program."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../tools"), os.path.join(HERE, "../peers")]
from harness import Tables
from proxy import Proxy

S3 = os.environ.get("S3_ENDPOINT", "")
REGION = os.environ.get("AWS_REGION", "us-east-1")


def port_of(url):
    return url.split("://", 1)[-1].split("/")[0]


class Kind:
    proxied = False
    http = False
    expired = None    # style of the proxy's `expire`; None: there are no credentials that expire
    impatient = {}    # options by which an answer is waited for at most some 1500 ms

    def __init__(self, name):
        self.name = name

    def prepare(self, cell):
        pass

    def refusal(self, status):
        """Fields of an `answer` with that HTTP status."""
        raise NotImplementedError


class Sqlite(Kind):
    def options(self, cell, endpoint):
        return {"catalog-type": "sql", "uri": f"sqlite:///{cell.dir}/catalog.db", "warehouse": f"file://{cell.warehouse}"}

    def address(self, cell):
        return f"sqlite:///{cell.dir}/catalog.db", {}


class Hadoop(Kind):
    def options(self, cell, endpoint):
        return {"catalog-type": "hadoop", "warehouse": f"file://{cell.warehouse}"}

    def address(self, cell):
        return f"hadoop:{cell.warehouse}", {}


class Postgres(Kind):
    proxied, impatient = True, {"jdbc.socketTimeout": "2"}
    swap, commit, load = {"path": "^UPDATE iceberg_tables"}, {"path": "^COMMIT"}, {"path": "^SELECT metadata_location FROM iceberg_tables"}

    @property
    def backend(self):
        return f"pg:127.0.0.1:{os.environ['FRAZIL_PG_PORT']}"

    def options(self, cell, endpoint):
        return {"catalog-type": "sql", "uri": f"postgresql://frazil:frazil@{endpoint or self.backend[3:]}/catalog", "catalog-name": cell.tag, "warehouse": f"file://{cell.warehouse}"}

    def address(self, cell):
        return f"postgresql://frazil:frazil@{self.backend[3:]}/catalog", {"catalog": cell.tag}


class Http(Kind):
    proxied = http = True
    impatient = {"http-client.apache.socket-timeout-ms": "1500"}

    @staticmethod
    def store(cell, endpoint):
        """Options of S3, which jobs reach through the proxy too."""
        return {"s3.endpoint": f"http://127.0.0.1:{cell.proxy.ports[1]}" if endpoint else S3, "s3.path-style-access": "true", "client.region": REGION}

    @property
    def swap(self):
        return self.commit


class Glue(Http):
    throttled = 400
    commit, load, expired = {"target": r"AWSGlue\.UpdateTable$"}, {"target": r"AWSGlue\.GetTable$"}, "json"

    @property
    def backend(self):
        return port_of(S3)

    def options(self, cell, endpoint):
        return {"catalog-type": "glue", "warehouse": f"s3://lake/{cell.tag}", "glue.endpoint": f"http://{endpoint or self.backend}", **self.store(cell, endpoint)}

    def address(self, cell):
        return f"glue:http://{self.backend}", {}

    def refusal(self, status):
        kind = {500: "InternalServiceException", 503: "ServiceUnavailable", 409: "ConcurrentModificationException", 400: "ThrottlingException"}.get(status)
        return {"answer": '{"__type":"%s","message":"spoiled"}' % kind, "type": "application/x-amz-json-1.1"} if kind else {"answer": "<html>spoiled</html>", "type": "text/html"}


class S3Tables(Http):
    throttled = 429
    commit, load, expired = {"method": "PUT", "path": "/metadata-location$"}, {"method": "GET", "path": "/metadata-location$"}, "rest-json"

    @property
    def backend(self):
        return port_of(S3)

    def prepare(self, cell):
        import boto3
        api = boto3.client("s3tables", endpoint_url=S3, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test")
        cell.arn = api.create_table_bucket(name=cell.tag.replace("_", "-"))["arn"]

    def options(self, cell, endpoint):
        return {"catalog-type": "s3tables", "warehouse": cell.arn, "s3tables.endpoint": f"http://{endpoint or self.backend}", **self.store(cell, endpoint)}

    def address(self, cell):
        return f"s3tables:http://{self.backend}#{cell.arn}", {}

    def refusal(self, status):
        kind = {500: "InternalServerErrorException", 409: "ConflictException", 429: "TooManyRequestsException"}.get(status)
        return {"answer": '{"message":"spoiled"}', "headers": {"x-amzn-errortype": kind}} if kind else {"answer": "<html>spoiled</html>", "type": "text/html"}


class Rest(Http):
    throttled = 429
    impatient = {"rest.client.socket-timeout-ms": "1500"}
    commit, load = {"method": "POST", "path": "/namespaces/[^/]*/tables/t$"}, {"method": "GET", "path": r"/namespaces/[^/]*/tables/t(\?|$)"}

    @property
    def backend(self):
        return port_of(os.environ["FRAZIL_REST"])

    def options(self, cell, endpoint):
        return {"catalog-type": "rest", "uri": f"http://{endpoint or self.backend}", "credential": "tester:its secret", **self.store(cell, endpoint)}

    def address(self, cell):
        return f"rest:http://{self.backend}", {}

    def refusal(self, status):
        if status in (502, 504):
            return {"answer": "<html>spoiled</html>", "type": "text/html"}
        kind = {500: "InternalServerError", 503: "ServiceUnavailableException", 409: "CommitFailedException", 429: "TooManyRequestsException"}[status]
        return {"answer": '{"error":{"message":"spoiled","type":"%s","code":%d}}' % (kind, status)}


class Nessie(Rest):
    """A REST catalog with a prefix, tokens that count, and conflicts without a type."""

    @property
    def backend(self):
        return port_of(os.environ["FRAZIL_NESSIE"])

    def prepare(self, cell):
        cell.token = subprocess.run(["bash", os.environ["FRAZIL_NESSIE_TOKEN"]], capture_output=True, text=True, check=True).stdout.strip()

    def options(self, cell, endpoint):
        return {"catalog-type": "rest", "uri": f"http://{endpoint or self.backend}/iceberg", "token": cell.token, "token-exchange-enabled": "false", **self.store(cell, endpoint)}

    def address(self, cell):
        return f"rest:http://{self.backend}/iceberg", {"token": cell.token}


KINDS = {k.name: k for k in (Sqlite("sqlite"), Hadoop("hadoop"), Postgres("postgres"), Glue("glue"), S3Tables("s3tables"), Rest("rest"), Nessie("nessie"))}


class Lake(Tables):
    """Tables in a catalog of that kind, in a database of their own. Jobs reach the catalog and S3 through a proxy (of kinds that have one), judges go straight."""

    def __init__(self, kind, name, broker, **kw):
        super().__init__(broker, name, **kw)
        self.kind, self.db, self.tag = kind, name.replace("-", "_"), name.replace("-", "_")
        self.proxy, self.more, self.at_end = None, {}, lambda: None
        kind.prepare(self)
        if kind.proxied:
            self.proxy = Proxy(f"0={kind.backend}", f"0={port_of(S3)}", log=f"{self.dir}/proxy.log")

    def close(self):
        if self.proxy:
            self.proxy.stop()
        self.at_end()

    def catalog(self, straight=False):
        """more: options besides those of the kind."""
        options = {"type": "iceberg", **self.kind.options(self, None if straight or not self.proxy else f"127.0.0.1:{self.proxy.ports[0]}"), **self.more}
        return "CREATE CATALOG c WITH (%s);\n" % ", ".join(f"'{k}'='{v}'" for k, v in options.items())

    def init(self):
        path = f"{self.dir}/init.sql"
        with open(path, "w") as f:
            f.write(self.catalog(straight=True))
        return path

    def strange(self, table="t"):
        from catalogs import open_catalog
        address, properties = self.kind.address(self)
        return open_catalog(address, **properties).load_table(f"{self.db}.{table}")
