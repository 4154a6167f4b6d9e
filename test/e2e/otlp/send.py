"""send.py http|grpc ENDPOINT COUNT NAME [gzip] [token=TOKEN] [ca=FILE] through OpenTelemetry's Python SDK."""
import logging, sys

kind, endpoint, count, name = sys.argv[1:5]
more = dict(a.partition("=")[::2] for a in sys.argv[5:])
options = {"endpoint": endpoint}
if kind == "http":
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    options["compression"] = Compression.Gzip if "gzip" in more else Compression.NoCompression
    if "ca" in more:
        options["certificate_file"] = more["ca"]
    if "token" in more:
        options["headers"] = {"authorization": "Bearer " + more["token"]}
else:
    import grpc
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    options["compression"] = grpc.Compression.Gzip if "gzip" in more else grpc.Compression.NoCompression
    options["insecure"] = "ca" not in more
    if "ca" in more:
        options["credentials"] = grpc.ssl_channel_credentials(open(more["ca"], "rb").read())
    if "token" in more:
        options["headers"] = (("authorization", "Bearer " + more["token"]),)

from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource

provider = LoggerProvider(resource=Resource.create({"service.name": "py", "host.name": "web01"}))
provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(**options), max_queue_size=1 << 20))
log = logging.getLogger("sender")
log.setLevel(logging.INFO)
log.addHandler(LoggingHandler(logger_provider=provider))
for i in range(int(count)):
    log.warning("message %d é", i, extra={"n": i, "who": name})
provider.shutdown()
