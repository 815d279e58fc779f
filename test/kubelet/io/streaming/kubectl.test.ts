/** Real clients: kubectl 1.32 over WebSocket and SPDY, kubectl 1.20 over SPDY. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { connect, createServer, type Server } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { kubectls } from '../../../support/kubectls.ts';
import { type PodServer, startPodServer } from './pod-server.ts';

const CLIENTS = [
  {
    name: 'current kubectl, its own choice',
    of: 'installed',
    env: {},
    exec: /^websocket v5\.channel/,
    forward: /^websocket spdy\/3\.1\+portforward/,
  },
  {
    name: 'current kubectl, SPDY',
    of: 'installed',
    env: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false', KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' },
    exec: /^spdy\/3\.1$/,
    forward: /^spdy\/3\.1$/,
  },
  { name: 'kubectl 1.20', of: '1.20', env: {}, exec: /^spdy\/3\.1$/, forward: /^spdy\/3\.1$/ },
];

const here = kubectls().flatMap(({ label, path }) =>
  CLIENTS.filter(({ of }) => of === label).map((client) => ({ ...client, path })),
);

for (const client of here) {
  describe(client.name, { timeout: 60_000 }, () => {
    let server: PodServer;
    let echo: Server;
    let echoPort = 0;
    before(async () => {
      server = await startPodServer();
      echo = createServer({ allowHalfOpen: true }, (socket) => {
        socket.on('error', () => {});
        socket.pipe(socket);
      });
      await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
      const address = echo.address();
      echoPort = typeof address === 'object' ? (address?.port ?? 0) : 0;
    });
    after(async () => {
      await server?.stop();
      echo?.close();
    });

    const start = (...args: string[]): ChildProcess =>
      spawn(
        client.path,
        [
          `--server=${server.url}`,
          '--insecure-skip-tls-verify',
          '--token=any',
          '--kubeconfig=/dev/null',
          '--cache-dir=/nonexistent',
          ...args,
        ],
        {
          stdio: ['pipe', 'pipe', 'pipe'],
          env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...client.env },
        },
      );

    async function kubectl(
      args: readonly string[],
      input?: Buffer,
    ): Promise<{ code: number | null; stdout: Buffer; stderr: string }> {
      const child = start(...args);
      const stdout: Buffer[] = [];
      let stderr = '';
      child.stdout?.on('data', (part: Buffer) => stdout.push(part));
      child.stderr?.on('data', (part: Buffer) => {
        stderr += part.toString('utf8');
      });
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
      const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
      return { code, stdout: Buffer.concat(stdout), stderr };
    }

    const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

    it('kubectl exec runs a command and returns its exit code, stdout and stderr', async () => {
      const result = await kubectl(['exec', 'p', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7']);
      assert.equal(result.code, 7, result.stderr);
      assert.equal(result.stdout.toString(), 'out\n');
      assert.match(result.stderr, /^err\n/);
      assert.match(server.upgrades.at(-1) ?? '', client.exec);
      assert.equal((await kubectl(['exec', 'p', '--', 'true'])).code, 0);
    });

    it('kubectl exec transfers large output and input unchanged', async () => {
      const output = await kubectl(['exec', 'p', '--', 'head', '-c', '6000000', '/dev/zero']);
      assert.equal(output.stdout.length, 6_000_000);
      assert.equal(sha(output.stdout), sha(Buffer.alloc(6_000_000)));
      const input = randomBytes(3_000_000);
      const back = await kubectl(['exec', '-i', 'p', '--', 'sha256sum'], input);
      assert.equal(back.code, 0, back.stderr);
      assert.equal(back.stdout.toString().split(' ')[0], sha(input));
    });

    it('kubectl exec reports why a command could not be started', async () => {
      const result = await kubectl(['exec', 'p', '--', 'missing']);
      assert.equal(result.code, 1);
      assert.match(result.stderr, /exec: "missing": not found/);
    });

    it('the command of kubectl exec is killed when the client is killed', async () => {
      const child = start('exec', 'p', '--', 'sleep', '60');
      const count = server.processes.length;
      for (const deadline = Date.now() + 10_000; server.processes.length === count && Date.now() < deadline; ) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      child.kill('SIGKILL');
      const process = server.processes.at(-1);
      assert.equal(await process?.exited, 137);
      assert.ok(process?.closed());
    });

    it('kubectl exec sends the size of a terminal', async () => {
      const command = `stty rows 33 cols 111; exec ${client.path} --server=${server.url} --insecure-skip-tls-verify --token=any exec -it p -- sh -c 'sleep 0.3; echo done'`;
      const child = spawn('script', ['-qefc', command, '/dev/null'], {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', SHELL: '/bin/sh', ...client.env },
      });
      let output = '';
      child.stdout.on('data', (part: Buffer) => {
        output += part.toString('utf8');
      });
      const code = await new Promise((resolve) => child.on('close', resolve));
      assert.equal(code, 0, output);
      assert.match(output, /done/);
      assert.ok(server.processes.at(-1)?.sizes.includes('111x33'), String(server.processes.at(-1)?.sizes));
    });

    it('forwards a port for several connections at once, also after a refused connection', async () => {
      const closed = createServer();
      await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
      const address = closed.address();
      const refusedPort = typeof address === 'object' ? (address?.port ?? 0) : 0;
      await new Promise((resolve) => closed.close(resolve));
      const child = start('port-forward', 'pod/p', `:${echoPort}`, `:${refusedPort}`);
      try {
        let reported = '';
        let stderr = '';
        child.stderr?.on('data', (part: Buffer) => {
          stderr += part.toString('utf8');
        });
        const ports = await new Promise<number[]>((resolve, reject) => {
          child.on('close', () => reject(new Error(stderr)));
          child.stdout?.on('data', (part: Buffer) => {
            reported += part.toString('utf8');
            const lines = [...reported.matchAll(/127\.0\.0\.1:(\d+) -> (\d+)/g)];
            if (lines.length < 2) return;
            resolve(
              [echoPort, refusedPort].map((target) => Number(lines.find((line) => Number(line[2]) === target)?.[1])),
            );
          });
        });
        const through = (port: number, bytes: Buffer): Promise<Buffer> =>
          new Promise((resolve, reject) => {
            const socket = connect({ host: '127.0.0.1', port });
            const parts: Buffer[] = [];
            socket.on('data', (part: Buffer) => parts.push(part));
            socket.on('end', () => resolve(Buffer.concat(parts)));
            socket.on('error', reject);
            socket.end(bytes);
          });
        const blocks = [randomBytes(700_000), randomBytes(300_000), randomBytes(10)];
        const answers = await Promise.all(blocks.map((block) => through(ports[0] ?? 0, block)));
        assert.deepEqual(answers.map(sha), blocks.map(sha));
        assert.match(server.upgrades.at(-1) ?? '', client.forward);
        // Newer clients close the whole session after a refused connection. Only the reported reason matters here.
        await through(ports[1] ?? 0, Buffer.from('x')).catch(() => {});
        for (const deadline = Date.now() + 5_000; !/ECONNREFUSED/.test(stderr) && Date.now() < deadline; ) {
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        assert.match(stderr, new RegExp(`error forwarding port ${refusedPort}: .*ECONNREFUSED`));
      } finally {
        child.kill('SIGTERM');
      }
    });
  });
}
