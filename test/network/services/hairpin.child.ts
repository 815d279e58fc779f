/** A pod in a separate network namespace: serves port 8080, and connects to its own service for each input line. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const [address = '', service = ''] = process.argv.slice(2);
process.stdout.write('up\n');
for await (const _ of process.stdin) break;
createServer((socket) => socket.end(`from ${socket.remoteAddress?.replace('::ffff:', '')}`)).listen(8080, address);
const socket = connect({ host: service, port: 80, timeout: 2_000 });
socket.on('timeout', () => socket.destroy(new Error('timeout')));
let text = '';
socket.setEncoding('utf8').on('data', (part: string) => {
  text += part;
});
await once(socket, 'close').catch((error: unknown) => {
  text = String(error);
});
process.stdout.write(text);
process.exit(0);
