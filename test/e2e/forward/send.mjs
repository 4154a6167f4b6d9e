// send.mjs HOST PORT COUNT TAG MODE [KEY [USER PASSWORD]]: events through @fluent-org/logger, each acknowledged.
import { FluentClient } from '@fluent-org/logger';

const [host, port, count, tag, mode, key, username, password] = process.argv.slice(2);
const security = key ? { clientHostname: 'client', sharedKey: key, username, password } : undefined;
const client = new FluentClient(tag, { socket: { host, port: Number(port) }, eventMode: mode, ack: { ackTimeout: 20000 }, security });
client.socketOn('error', (e) => { console.error(String(e)); process.exit(1); });
const sent = [];
for (let i = 0; i < Number(count); i++) sent.push(client.emit({ message: `m ${i} é`, n: i }));
const timer = setTimeout(() => { console.error('no answer'); process.exit(1); }, Number(process.env.FORWARD_PATIENCE_MS ?? 60000));
await Promise.all(sent);
clearTimeout(timer);
await client.shutdown();
