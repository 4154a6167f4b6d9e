// send.mjs URL STREAM COUNT PREFIX: see test/peers/firehose_clients.sh
import { FirehoseClient, PutRecordBatchCommand } from '@aws-sdk/client-firehose';

const [endpoint, DeliveryStreamName, count, prefix] = process.argv.slice(2);
const client = new FirehoseClient({ endpoint, region: 'us-east-1', credentials: { accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY } });
let failed = 0;
for (let from = 0; from < Number(count); from += 100) {
    const n = Math.min(100, Number(count) - from);
    const Records = Array.from({ length: n }, (_, i) => ({ Data: Buffer.from(JSON.stringify({ k: `${prefix}-${from + i}`, n: from + i }) + '\n') }));
    const r = await client.send(new PutRecordBatchCommand({ DeliveryStreamName, Records }));
    if (r.RequestResponses.length !== n) throw new Error(`${r.RequestResponses.length} answers`);
    failed += r.FailedPutCount;
}
console.log('failed', failed);
