import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync } from 'node:fs';
import { appendFile, chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { silentLog } from '../../src/base/log.ts';
import { readHeaders } from '../../src/host/logging/log-forwarding.ts';
import { systemClock as clock, systemRandom as random } from '../../src/host/process/process.ts';
import { createForwarder, type Forwarder } from '../../src/logging/forwarder.ts';
import { ContainerLogs } from '../../src/logging/io/container-logs.ts';
import { createHttpReceiver } from '../../src/logging/io/http-receiver.ts';
import { openSpool } from '../../src/logging/io/spool.ts';
import { createSyslogReceiver } from '../../src/logging/io/syslog-receiver.ts';
import type { Receiver } from '../../src/logging/port.ts';

const line = (text: string): string => `2026-01-02T03:04:05.123456789Z stdout F ${text}\n`;
const RSYSLOGD = '/usr/sbin/rsyslogd';

async function until(what: string, test: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await test())) {
    assert.ok(Date.now() < end, `in time: ${what}`);
    await sleep(50);
  }
}

describe('log forwarding', () => {
  let root = '';
  let log = '';
  const warnings: string[] = [];
  const cleanups: (() => unknown)[] = [];
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'forward-'));
    await mkdir(join(root, 'pods/shop_web_uid-1/app'), { recursive: true });
    log = join(root, 'pods/shop_web_uid-1/app/0.log');
    warnings.length = 0;
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
    await rm(root, { recursive: true });
  });

  async function forwarderTo(receiver: Receiver, bufferBytes = 1_000_000): Promise<Forwarder> {
    let nowMs = 0;
    const spool = await openSpool(join(root, 'spool'), bufferBytes);
    const source = new ContainerLogs({
      directory: join(root, 'pods'),
      bytesPerSecond: 10_000_000,
      offsets: spool.offsets,
      sinceMs: 0,
      nowMs: () => 0,
      monotonicMs: () => {
        nowMs += 10_000;
        return nowMs;
      },
      log: silentLog,
    });
    const own = {
      ...silentLog,
      warn: (message: string, fields?: object) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
    };
    const ownLines = () => ({ records: [], dropped: 0 });
    const forwarder = createForwarder({ receiver, spool, source, ownLines, clock, random, log: own });
    cleanups.push(
      () => source.close(),
      () => receiver.close(),
    );
    return forwarder;
  }

  const metric = (forwarder: Forwarder, name: string): number =>
    Number(new RegExp(`^hyperedge_log_forward_${name} (.*)$`, 'm').exec(forwarder.metrics())?.[1]);

  /** A receiver that answers with the given status and remembers the requests. */
  async function httpServer(
    answers: readonly (readonly [status: number, body?: string, headers?: Record<string, string>])[],
  ): Promise<{ url: string; requests: { path: string; headers: IncomingHttpHeaders; body: string }[] }> {
    const requests: { path: string; headers: IncomingHttpHeaders; body: string }[] = [];
    const server: Server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      request.on('end', () => {
        const [status, text = '', headers = {}] = answers[Math.min(requests.length, answers.length - 1)] ?? [200];
        requests.push({ path: request.url ?? '', headers: request.headers, body });
        response.writeHead(status, headers).end(text);
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    cleanups.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
  }

  const http = (type: 'otlp' | 'loki', url: string, headers: Record<string, string> = {}): Receiver =>
    createHttpReceiver({
      type,
      url,
      node: 'edge-1',
      authorities: async () => [],
      headers: async () => headers,
      nowMs: () => 5,
    });

  it('posts OTLP logs to /v1/logs with the headers of the headersFile', async () => {
    const { url, requests } = await httpServer([[200, '{"partialSuccess":{"rejectedLogRecords":"1"}}']]);
    const forwarder = await forwarderTo(http('otlp', url, { Authorization: 'Bearer secret' }));
    await writeFile(log, line('one') + line('two'));
    await forwarder.read();
    await forwarder.send();
    assert.equal(requests.length, 1);
    assert.equal(requests[0]?.path, '/v1/logs');
    assert.equal(requests[0]?.headers.authorization, 'Bearer secret');
    assert.equal(requests[0]?.headers['content-type'], 'application/json');
    const { scopeLogs } = JSON.parse(requests[0]?.body ?? '').resourceLogs[0];
    assert.deepEqual(
      scopeLogs[0].logRecords.map((each: { body: { stringValue: string } }) => each.body.stringValue),
      ['one', 'two'],
    );
    assert.equal(metric(forwarder, 'sent_records_total'), 1);
    assert.equal(metric(forwarder, 'rejected_records_total'), 1);
    assert.equal(metric(forwarder, 'buffered_bytes'), 0);
  });

  it('posts log lines to Loki in its JSON format', async () => {
    const { url, requests } = await httpServer([[204]]);
    const forwarder = await forwarderTo(http('loki', url));
    await writeFile(log, line('one'));
    await forwarder.read();
    await forwarder.send();
    assert.equal(requests[0]?.path, '/loki/api/v1/push');
    const { streams } = JSON.parse(requests[0]?.body ?? '');
    assert.deepEqual(streams[0].stream, {
      job: 'hyperedge',
      node: 'edge-1',
      namespace: 'shop',
      pod: 'web',
      container: 'app',
      stream: 'stdout',
    });
    assert.equal(streams[0].values[0][1], 'one');
  });

  it('keeps records while the receiver is unavailable, and drops records that the receiver rejects permanently', async () => {
    const { url, requests } = await httpServer([
      [503],
      [302, '', { location: 'http://127.0.0.1:1/' }],
      [200],
      [400, 'too old'],
    ]);
    const forwarder = await forwarderTo(http('loki', url));
    await writeFile(log, line('one'));
    await forwarder.read();
    await forwarder.send();
    await forwarder.send();
    assert.equal(metric(forwarder, 'receiver_up'), 0);
    assert.equal(metric(forwarder, 'failures_total'), 2);
    assert.equal(warnings.length, 1, 'one log line for an outage');
    await forwarder.send();
    assert.equal(metric(forwarder, 'sent_records_total'), 1);
    assert.equal(metric(forwarder, 'receiver_up'), 1);
    await appendFile(log, line('two'));
    await forwarder.read();
    await forwarder.send();
    assert.equal(metric(forwarder, 'rejected_records_total'), 1);
    assert.equal(requests.length, 4);
    assert.equal(metric(forwarder, 'buffered_bytes'), 0);
  });

  it('drops the oldest records when the buffer is full, and counts and logs the dropped records', async () => {
    const forwarder = await forwarderTo(http('loki', 'http://127.0.0.1:1'), 100_000);
    for (let index = 0; index < 20; index += 1) {
      await appendFile(log, line(`${index} ${'x'.repeat(500)}`).repeat(20));
      await forwarder.read();
      await forwarder.send();
    }
    assert.ok(metric(forwarder, 'buffered_bytes') <= 100_000);
    assert.ok(metric(forwarder, 'dropped_records_total') >= 200, forwarder.metrics());
    assert.equal(warnings.filter((each) => each.startsWith('log records dropped')).length, 1);
  });

  it('reads log files only as fast as the receiver accepts records, and loses none', async () => {
    const { url, requests } = await httpServer([[204]]);
    const forwarder = await forwarderTo(http('loki', url), 1_048_576);
    const count = 6_000;
    await writeFile(log, Array.from({ length: count }, (_, index) => line(`${index} ${'x'.repeat(500)}`)).join(''));
    for (let round = 0; round < 100 && metric(forwarder, 'sent_records_total') < count; round += 1) {
      await forwarder.read();
      assert.ok(metric(forwarder, 'buffered_bytes') <= 1_048_576);
      await forwarder.send();
    }
    assert.equal(metric(forwarder, 'dropped_records_total'), 0);
    const sent = requests.flatMap(({ body }) =>
      JSON.parse(body).streams.flatMap(({ values }: { values: [string, string][] }) =>
        values.map(([, text]) => Number(text.split(' ')[0])),
      ),
    );
    assert.deepEqual(
      sent,
      Array.from({ length: count }, (_, index) => index),
    );
  });

  it('sends framed syslog over TCP, and connects again after a disconnection', async () => {
    const received: string[] = [];
    let connections = 0;
    const server = createTcpServer((socket) => {
      connections += 1;
      socket.on('data', (data) => {
        received.push(data.toString());
        if (connections === 1) socket.end();
      });
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    cleanups.push(() => server.close());
    const url = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const forwarder = await forwarderTo(createSyslogReceiver({ url, node: 'edge-1', authorities: async () => [] }));
    await writeFile(log, line('one') + line('zwei ü'));
    await forwarder.read();
    await forwarder.send();
    await until('the first records', () => received.length === 1);
    await sleep(100);
    await appendFile(log, line('three'));
    await forwarder.read();
    await until('the record after the disconnection', async () => {
      await forwarder.send();
      return received.join('').includes('three');
    });
    const whole = Buffer.from(received.join(''));
    const messages: string[] = [];
    for (let at = 0; at < whole.length; ) {
      const space = whole.indexOf(0x20, at);
      const length = Number(whole.toString('latin1', at, space));
      messages.push(whole.toString('utf8', space + 1, space + 1 + length));
      at = space + 1 + length;
    }
    assert.deepEqual(
      messages.map((message) => message.slice(message.indexOf('] ') + 2)),
      ['one', 'zwei ü', 'three'],
    );
    assert.equal(connections, 2);
  });

  it('sends each record as one syslog datagram over UDP', async () => {
    const socket = createSocket('udp4');
    const received: string[] = [];
    socket.on('message', (data) => received.push(data.toString()));
    await new Promise<void>((resolve) => {
      socket.bind(0, '127.0.0.1', resolve);
    });
    cleanups.push(() => socket.close());
    const url = `udp://127.0.0.1:${socket.address().port}`;
    const forwarder = await forwarderTo(createSyslogReceiver({ url, node: 'edge-1', authorities: async () => [] }));
    await writeFile(log, line('one') + line('x'.repeat(5000)));
    await forwarder.read();
    await forwarder.send();
    await until('both datagrams', () => received.length === 2);
    assert.match(received[0] ?? '', /^<134>1 .*\] one$/);
    assert.equal(received[1]?.length, 2048);
  });

  it('verifies the certificate of a TLS receiver with the configured CA file', async () => {
    const [key, cert] = [join(root, 'key.pem'), join(root, 'cert.pem')];
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=logs'],
        ...['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
      ],
      { stdio: 'ignore' },
    );
    const received: string[] = [];
    const server = createTlsServer({ key: await readFile(key), cert: await readFile(cert) }, (socket) => {
      socket.on('data', (data) => received.push(data.toString()));
      socket.on('error', () => undefined);
    });
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    cleanups.push(() => server.close());
    const url = `tls://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await writeFile(log, line('one'));
    let authorities: string[] = [];
    const forwarder = await forwarderTo(
      createSyslogReceiver({ url, node: 'edge-1', authorities: async () => authorities }),
    );
    await forwarder.read();
    await forwarder.send();
    assert.match(warnings[0] ?? '', /self-signed certificate|unable to verify/);
    assert.deepEqual(received, []);
    authorities = [await readFile(cert, 'utf8')];
    await forwarder.send();
    await until('the record', () => received.join('').endsWith('] one'));
  });

  it('reads HTTP headers only from a file with mode 0600, and omits their values from errors', async () => {
    const file = join(root, 'headers');
    await writeFile(file, '# token of Loki\nAuthorization: Bearer secret\nX-Scope-OrgID: edge\n', { mode: 0o600 });
    assert.deepEqual(await readHeaders(file), { Authorization: 'Bearer secret', 'X-Scope-OrgID': 'edge' });
    await chmod(file, 0o644);
    await assert.rejects(readHeaders(file), /every user can read; run chmod 0600/);
    await chmod(file, 0o600);
    for (const text of ['secret', 'Host: secret', 'A: secret\u0007', 'A B: secret']) {
      await writeFile(file, text);
      await assert.rejects(readHeaders(file), (error: Error) => {
        assert.match(error.message, /headersFile: .*:1 /);
        assert.ok(!error.message.includes('secret'), error.message);
        return true;
      });
    }
  });

  it('rsyslogd accepts and parses forwarded log lines', {
    skip: existsSync(RSYSLOGD) ? false : 'needs rsyslogd',
  }, async () => {
    const probe = createTcpServer();
    await new Promise<void>((resolve) => {
      probe.listen(0, '127.0.0.1', resolve);
    });
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => {
      probe.close(resolve);
    });
    const output = join(root, 'received');
    const config = join(root, 'rsyslog.conf');
    await writeFile(
      config,
      `global(workDirectory="${root}")
module(load="imtcp")
input(type="imtcp" port="${port}" address="127.0.0.1")
template(name="t" type="string" string="%hostname%|%app-name%|%syslogseverity-text%|%structured-data%|%msg%\\n")
action(type="omfile" file="${output}" template="t")
`,
    );
    const started: ChildProcess = spawn(RSYSLOGD, ['-n', '-f', config, '-i', join(root, 'rsyslog.pid')], {
      stdio: 'ignore',
    });
    cleanups.push(async () => {
      started.kill('SIGKILL');
      await until('the end of rsyslogd', () => started.exitCode !== null || started.signalCode !== null);
    });
    const url = `tcp://127.0.0.1:${port}`;
    const forwarder = await forwarderTo(createSyslogReceiver({ url, node: 'edge-1', authorities: async () => [] }));
    await writeFile(log, line('hello world') + line('esc \u001B[31m \u0001') + line('ü'.repeat(100)));
    await forwarder.read();
    const lines = async (): Promise<string[]> =>
      (await readFile(output, 'utf8').catch(() => '')).split('\n').filter((each) => each !== '');
    await until('three lines', async () => {
      await forwarder.send();
      return (await lines()).length === 3;
    });
    const head =
      'edge-1|app|info|[hyperedge@32473 namespace="shop" pod="web" uid="uid-1" container="app" stream="stdout"]|';
    assert.deepEqual(
      (await lines()).map((each) => each.replace('| ', '|')),
      [`${head}hello world`, `${head}esc \\x1b[31m \\x01`, `${head}${'ü'.repeat(100)}`],
    );
  });
});
