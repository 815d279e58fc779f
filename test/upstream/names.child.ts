/**
 * Answers for the names of services, since this release has no cluster DNS and the suite reaches services by name: A records of cluster IPs and of
 * external names, on UDP port 53 of every address of the network namespace it runs in. Usage: `node names.child.ts KUBECTL` with KUBECONFIG set.
 */
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { createInterface } from 'node:readline';

const DOMAIN = '.svc.cluster.local';
const HEADER = 12;
const A = 1;
const NO_SUCH_NAME = 3;

/** `name.namespace` → cluster IP or, of external names, the name they stand for. */
const services = new Map<string, string>();

const watcher = spawn(
  process.argv[2] ?? 'kubectl',
  [
    'get',
    'services',
    '--all-namespaces',
    '--watch',
    '--output-watch-events',
    '-o=jsonpath={.type} {.object.metadata.name}.{.object.metadata.namespace} {.object.spec.clusterIP}{.object.spec.externalName}{"\\n"}',
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
watcher.on('exit', (code) => process.exit(code ?? 1));
createInterface({ input: watcher.stdout }).on('line', (line) => {
  const [type = '', name = '', target = ''] = line.split(' ');
  if (type === 'DELETED') services.delete(name);
  else services.set(name, target);
});
process.on('SIGTERM', () => {
  watcher.kill('SIGTERM');
  process.exit(0);
});

/** The question's name, and where it ends. */
function readName(message: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = HEADER;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5 };
}

function addressOf(name: string, depth = 0): string | undefined {
  if (!name.endsWith(DOMAIN) || depth > 4) return undefined;
  const target = services.get(name.slice(0, -DOMAIN.length));
  if (target === undefined || /^[\d.]+$/.test(target)) return target;
  return addressOf(target, depth + 1);
}

const socket = createSocket('udp4');
socket.on('message', (message, peer) => {
  if (message.length < HEADER + 5) return;
  const { name, end } = readName(message);
  const address = addressOf(name);
  const answers = address !== undefined && message.readUInt16BE(end - 4) === A ? 1 : 0;
  const head = Buffer.from(message.subarray(0, end));
  head.writeUInt16BE(0x8180 | (address === undefined ? NO_SUCH_NAME : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(answers, 6);
  head.writeUInt32BE(0, 8);
  // The name again (a pointer to the question), A, IN, five seconds, four bytes.
  const record = Buffer.from([0xc0, HEADER, 0, A, 0, 1, 0, 0, 0, 5, 0, 4, ...(address ?? '').split('.').map(Number)]);
  socket.send(answers === 1 ? Buffer.concat([head, record]) : head, peer.port, peer.address);
});
socket.bind(53, '0.0.0.0');
