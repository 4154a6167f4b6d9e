// send.mjs HOST PORT COUNT TAG MODE [KEY [USER PASSWORD]]: events through @fluent-org/logger, each acknowledged. FORWARD_CA: over TLS, to a server that this authority vouches for;
// FORWARD_CERT, FORWARD_CERT_KEY: with a certificate of its own.
import { readFileSync } from 'fs';
import { FluentClient } from '@fluent-org/logger';

const [host, port, count, tag, mode, key, username, password] = process.argv.slice(2);
const security = key ? { clientHostname: 'client', sharedKey: key, username, password } : undefined;
const { FORWARD_CA, FORWARD_CERT, FORWARD_CERT_KEY } = process.env;
const own = FORWARD_CERT ? { cert: readFileSync(FORWARD_CERT), key: readFileSync(FORWARD_CERT_KEY) } : {};
const tls = FORWARD_CA ? { tls: { ca: readFileSync(FORWARD_CA), servername: 'localhost', ...own } } : {};
const client = new FluentClient(tag, { socket: { host, port: Number(port), ...tls }, eventMode: mode, ack: { ackTimeout: 20000 }, security });
client.socketOn('error', (e) => { console.error(String(e)); process.exit(1); });
const sent = [];
for (let i = 0; i < Number(count); i++) sent.push(client.emit({ message: `m ${i} é`, n: i }));
const timer = setTimeout(() => { console.error('no answer'); process.exit(1); }, Number(process.env.FORWARD_PATIENCE_MS ?? 60000));
await Promise.all(sent);
clearTimeout(timer);
await client.shutdown();
