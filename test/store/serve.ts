/**
 * `serve.ts DATA [PKI] [PORT]`: runs this store as a process. Prints its port, and exits on SIGTERM or when the disk
 * fails.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLog } from '../../src/base/log.ts';
import { createSqliteLog } from '../../src/store/disk/index.ts';
import { createEtcdServer } from '../../src/store/index.ts';
import { createRpcListener } from '../../src/wire/grpc/index.ts';

const [directory = '', pki = '', port = '0'] = process.argv.slice(2);
const read = (name: string): Buffer => readFileSync(join(pki, name));
const log = createLog({
  component: 'etcd',
  level: 2,
  sink: { write: (line) => process.stderr.write(`${line}\n`) },
  nowMs: () => Date.now(),
});
const server = createEtcdServer({
  storage: createSqliteLog({ directory, log }),
  listener: createRpcListener({
    host: '127.0.0.1',
    port: Number(port),
    log,
    ...(pki === '' ? {} : { tls: { cert: read('server.crt'), key: read('server.key'), ca: read('ca.crt') } }),
  }),
  clock: {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    setTimer: (delayMs, callback) => {
      const timer = setTimeout(callback, delayMs);
      return { cancel: () => clearTimeout(timer) };
    },
  },
  log,
  name: 'test',
  clientUrls: ['https://127.0.0.1:2379'],
  onFatal: () => process.exit(1),
});
// The handler is installed before the port is printed, because a test may stop the process immediately.
process.once('SIGTERM', () => {
  void server.stop().then(() => process.exit(0));
});
try {
  const address = await server.start();
  process.stdout.write(`${address.port}\n`);
} catch (error) {
  log.error((error as Error).message);
  process.exit(1);
}
