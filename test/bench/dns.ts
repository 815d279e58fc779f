/**
 * `npm run bench:dns [-- SECONDS]`: UDP queries for services, half of them for names that do not exist, as a pod's
 * search list causes them. Compared with a bare UDP echo with the same client in the same run. Prints queries per
 * second of wall time and per second of CPU time of the server, and their ratio to the echo. Exit code 1 below the
 * goal.
 */
import { fork } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { join } from 'node:path';
import { encode } from 'dns-packet';

const seconds = Number(process.argv[2] ?? 5);
const SOCKETS = 4;
const WINDOW = 64;
const GOAL_PER_CORE = 20_000;

const messages = Array.from({ length: 4_096 }, (_, index) => {
  const service = (index * 7) % 10_000;
  const name = `service-${service}.ns-${service % 50}.svc.cluster.local`;
  const missing = `www.example.com.ns-${service % 50}.svc.cluster.local`;
  const question = { name: index % 2 === 0 ? name : missing, type: 'A' as const };
  return encode({ type: 'query', id: index, flags: 0x0100, questions: [question] });
});

interface Result {
  readonly perSecond: number;
  readonly perCore: number;
}

async function measure(kind: 'echo' | 'dns'): Promise<Result> {
  const child = fork(join(import.meta.dirname, 'dns', 'server.ts'), [kind], { stdio: 'inherit' });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  const cpuMs = async (): Promise<number> => {
    child.send('cpu');
    const [{ cpuMs: ms }] = (await once(child, 'message')) as [{ cpuMs: number }];
    return ms;
  };
  let answered = 0;
  let running = true;
  let next = 0;
  const sockets = Array.from({ length: SOCKETS }, () => {
    const socket = createSocket('udp4');
    let lastMs = performance.now();
    const send = (): void => {
      const message = messages[next++ % messages.length];
      if (message !== undefined) socket.send(message, () => {});
    };
    const fill = (): void => {
      for (let index = 0; index < WINDOW; index++) send();
    };
    socket.on('message', () => {
      answered++;
      lastMs = performance.now();
      if (running) send();
    });
    socket.connect(port, '127.0.0.1', fill);
    // Continue after lost datagrams.
    const timer = setInterval(() => {
      if (running && performance.now() - lastMs > 200) fill();
    }, 100);
    return {
      close: () => {
        clearInterval(timer);
        socket.close();
      },
    };
  });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const [beforeMs, before, startMs] = [await cpuMs(), answered, performance.now()];
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  const [afterMs, after, endMs] = [await cpuMs(), answered, performance.now()];
  running = false;
  for (const socket of sockets) socket.close();
  child.kill();
  await once(child, 'exit');
  const count = after - before;
  return { perSecond: count / ((endMs - startMs) / 1_000), perCore: count / ((afterMs - beforeMs) / 1_000) };
}

const echo = await measure('echo');
const dns = await measure('dns');
const print = (what: string, { perSecond, perCore }: Result): void =>
  console.log(`${what}: ${Math.round(perSecond)} queries/s, ${Math.round(perCore)} per second of one core`);
print('bare UDP echo', echo);
print('cluster DNS, 10,000 services', dns);
console.log(
  `ratio to the echo: ${(dns.perSecond / echo.perSecond).toFixed(2)} of wall time, ${(dns.perCore / echo.perCore).toFixed(2)} of one core`,
);
if (dns.perCore < GOAL_PER_CORE) {
  console.error(`below the goal of ${GOAL_PER_CORE} queries per second of one core`);
  process.exit(1);
}
