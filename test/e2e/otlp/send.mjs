// send.mjs URL COUNT NAME through OpenTelemetry's JavaScript SDK: OTLP/HTTP JSON
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';

const [url, count, name] = process.argv.slice(2);
const exporter = new OTLPLogExporter({ url });
const provider = new LoggerProvider({ processors: [new BatchLogRecordProcessor({ exporter, maxQueueSize: 1 << 20 })] });
const logger = provider.getLogger('sender', '1.2');
for (let i = 0; i < Number(count); i++)
  logger.emit({ severityNumber: 13, severityText: 'WARN', body: `message ${i} é`, attributes: { n: i, who: name, list: ['a', i], nested: { x: 1.5 } } });
await provider.shutdown();
