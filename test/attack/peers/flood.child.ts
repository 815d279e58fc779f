/**
 * Attacks a TLS port without credentials: `flood.child.ts '{"mode":…,"port":…,"connections":…,"seconds":…}'`.
 * Connections that the server closes are reopened immediately, except in modes that only hold connections. At the end of the time, or when
 * no connection is left, it prints the results as JSON.
 */
import type { SocketConstructorOpts } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { isFlood, isHolding, streamOf } from './floods.ts';

interface FloodOptions {
  readonly mode: string;
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
}

const { mode, port, connections, seconds }: FloodOptions = JSON.parse(process.argv[2] ?? '{}');
if (!isFlood(mode)) throw new Error(`mode: ${mode} is unknown`);
const flood = mode;
/** If the server lacks the protocol, the other one is negotiated and the same bytes are sent. */
const PROTOCOLS = { h2: ['h2', 'http/1.1'], 'http/1.1': ['http/1.1'] };
const until = performance.now() + seconds * 1000;
const open = new Set<TLSSocket>();
/** Connections that completed their handshake. The kernel accepts others, of which the server knows nothing yet. */
const admitted = new Set<TLSSocket>();
let opened = 0;
let refused = 0;
let sentBytes = 0;

function attack(): void {
  if (performance.now() >= until) return;
  const { alpn, head, next } = streamOf(flood);
  const target: ConnectionOptions & Pick<SocketConstructorOpts, 'allowHalfOpen'> = {
    host: '127.0.0.1',
    port,
    rejectUnauthorized: false,
    ALPNProtocols: PROTOCOLS[alpn],
    // Otherwise Node closes the client's side when the server has closed its own. In the other modes this shows which
    // connections the server has closed.
    allowHalfOpen: flood === 'refused-upgrade',
  };
  const socket = connect(target);
  open.add(socket);
  let failed = false;
  const push = (): void => {
    if (socket.destroyed || performance.now() >= until) return;
    const bytes = next();
    if (bytes === undefined) return;
    sentBytes += bytes.length;
    if (socket.write(bytes)) setImmediate(push);
    else socket.once('drain', push);
  };
  socket.once('secureConnect', () => {
    opened += 1;
    admitted.add(socket);
    socket.write(head);
    push();
  });
  socket.on('data', () => {});
  socket.on('error', () => {
    failed = true;
  });
  socket.on('close', () => {
    if (failed) refused += 1;
    open.delete(socket);
    admitted.delete(socket);
    if (!isHolding(flood)) setImmediate(attack);
    else if (open.size === 0) finish();
  });
  if (flood === 'churn') socket.once('secureConnect', () => socket.destroy());
}

for (let i = 0; i < connections; i++) attack();
setTimeout(finish, seconds * 1000);

function finish(): void {
  const held = [...admitted].filter((each) => !each.destroyed).length;
  process.stdout.write(`${JSON.stringify({ opened, refused, sentBytes, held })}\n`, () => process.exit(0));
}
