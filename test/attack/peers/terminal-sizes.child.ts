/**
 * Floods a session with terminal sizes: `terminal-sizes.child.ts '{"url":…,"token":…,"seconds":…}'`. Prints the number
 * of sent sizes as JSON.
 */
import { setImmediate } from 'node:timers/promises';
import { WebSocket } from 'ws';

interface Options {
  readonly url: string;
  readonly token: string;
  readonly seconds: number;
}

const BUFFERED_BYTES = 1 << 20;
const RESIZE = 4;

const { url, token, seconds }: Options = JSON.parse(process.argv[2] ?? '{}');
const socket = new WebSocket(url, ['v5.channel.k8s.io'], {
  rejectUnauthorized: false,
  headers: { authorization: `Bearer ${token}` },
});
let sent = 0;
socket.on('error', () => {});
socket.once('open', async () => {
  while (socket.readyState === WebSocket.OPEN) {
    await setImmediate();
    if (socket.bufferedAmount > BUFFERED_BYTES) continue;
    for (let columns = 20; columns < 220; columns += 1)
      socket.send(Buffer.from(`${String.fromCharCode(RESIZE)}{"Width":${columns},"Height":30}`));
    sent += 200;
  }
});
setTimeout(() => {
  process.stdout.write(`${JSON.stringify({ sent })}\n`, () => process.exit(0));
}, seconds * 1000);
