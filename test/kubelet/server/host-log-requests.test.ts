import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { JournalQuery } from '../../../src/kubelet/ports/host-logs-port.ts';
import { HostLogRequests } from '../../../src/kubelet/server/host-log-requests.ts';
import type { KubeletResponse } from '../../../src/kubelet/server/port.ts';
import { routeOf } from '../../../src/kubelet/server/routes.ts';

const requested: JournalQuery[] = [];
const requests = new HostLogRequests({
  logs: {
    names: (path) => Promise.resolve(path === '' ? ['a<b', 'pods/'] : undefined),
    open: (path) => Promise.resolve(path === 'messages' ? Readable.from(['line\n']) : undefined),
    journal(query) {
      requested.push(query);
      return Readable.from(['journal\n']);
    },
  },
  units: new Map([['kubelet', 'hyperedge']]),
});

async function get(url: string): Promise<string> {
  const route = routeOf('GET', url);
  assert.equal(route?.name, 'hostLogs', url);
  const response = Object.assign(new PassThrough(), { writeHead: () => response });
  const body = text(response);
  const { signal } = new AbortController();
  await requests.serve(route.container, route.query, response as object as KubeletResponse, signal);
  return body;
}

test('serves files and directories of host logs, and reports missing files', async () => {
  assert.equal(await get('/logs/'), '<pre>\n<a href="a%3Cb">a&lt;b</a>\n<a href="pods/">pods/</a>\n</pre>\n');
  assert.equal(await get('/logs/messages'), 'line\n');
  await assert.rejects(get('/logs/none'), /404 page not found/);
  assert.equal(routeOf('GET', '/logs/%2e%2e/shadow')?.name, undefined);
  assert.equal(routeOf('GET', '/logs/a%2f..%2fb'), undefined);
  assert.deepEqual(routeOf('GET', '/logs/messages')?.subresources, ['log', 'proxy']);
});

test('serves journals with both sets of query parameters, and maps components to their systemd units', async () => {
  assert.equal(
    await get('/logs/?query=kubelet&tailLines=3&boot=-1&pattern=x&sinceTime=2026-01-01T00:00:00Z'),
    'journal\n',
  );
  assert.deepEqual(requested.pop(), {
    units: ['hyperedge'],
    since: '2026-01-01T00:00:00Z',
    tail: 3,
    boot: -1,
    pattern: 'x',
  });
  await get('/logs/journal?unit=kubelet&unit=sshd&tail=10&output=json&grep=y&case-sensitive=false');
  assert.deepEqual(requested.pop(), {
    units: ['hyperedge', 'sshd'],
    tail: 10,
    pattern: 'y',
    caseSensitive: false,
    output: 'json',
  });
});

for (const [query, field] of [
  ['query=--file%3D/etc/shadow', 'query'],
  ['query=a%20b', 'query'],
  ['query=a&tailLines=-1', 'tailLines'],
  ['query=a&boot=1', 'boot'],
  ['query=a&sinceTime=--x', 'sinceTime'],
  [`query=a&pattern=${'x'.repeat(2000)}`, 'pattern'],
] as const)
  test(`rejects an invalid ${field} by name: ${query.slice(0, 40)}`, async () => {
    await assert.rejects(get(`/logs/?${query}`), new RegExp(`^HttpError: ${field}: `));
    assert.deepEqual(requested, []);
  });
