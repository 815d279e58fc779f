import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { UsageError } from '../../../../src/cli/command.ts';
import { rigRecordingsCommand } from '../../../../src/cli/commands/rig/recordings.ts';

const FILE = '2026-01-01T000000-000Z.log';
const item = (node: string) => ({ node, name: FILE, start: '2026-01-01T00:00:00Z', bytes: 7, isOpen: false });

suite('hyperedge rig recordings', () => {
  let directory = '';
  let body: object = {};
  const urls: string[] = [];
  const server = createServer((request, response) => {
    urls.push(request.url ?? '');
    response.setHeader('content-type', 'application/json');
    response.end(request.url?.includes('file=') === true ? '' : JSON.stringify(body));
  });

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-recordings-'));
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const clusters = [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }];
    const contexts = [{ name: 'c', context: { cluster: 'c', user: 'u' } }];
    const document = { clusters, contexts, users: [{ name: 'u', user: {} }], 'current-context': 'c' };
    await writeFile(join(directory, 'kubeconfig'), JSON.stringify(document), { mode: 0o600 });
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true });
  });

  const run = async (positionals: string[], flags: Record<string, string> = {}) => {
    const printed = { code: 0, stdout: '', stderr: '' };
    urls.length = 0;
    printed.code = await rigRecordingsCommand.run({
      flags: { kubeconfig: join(directory, 'kubeconfig'), ...flags },
      positionals,
      table: [],
      out: {
        stdout: (text) => {
          printed.stdout += text;
        },
        stderr: (text) => {
          printed.stderr += text;
        },
      },
      progress: {} as never,
    });
    return printed;
  };

  test('lists the node of each recording, and names the nodes that cannot be listed', async () => {
    body = { items: [item('n2')], failures: [{ node: 'n1', message: 'node "n1" does not answer within 4 s' }] };
    const { code, stdout, stderr } = await run(['bench']);
    assert.match(
      stdout,
      /^FILE +NODE +START +BYTES +STATE\n2026-01-01T000000-000Z.log +n2 +2026-01-01\S+ +7 +closed\n/,
    );
    assert.equal(stderr, 'hyperedge: node n1: node "n1" does not answer within 4 s\n');
    assert.equal(code, 1);
    body = { items: [item('n2')] };
    assert.deepEqual(JSON.parse((await run(['bench'], { output: 'json' })).stdout), [item('n2')]);
    assert.equal((await run(['bench'])).code, 0);
  });

  test('prints a recording from the node that stores it, or from the node in the arguments', async () => {
    body = { items: [item('n2')] };
    await run(['bench', FILE]);
    assert.match(urls.at(-1) ?? '', /\/rigs\/bench\/recordings\?file=2026-01-01T000000-000Z\.log&node=n2$/);
    await run(['bench', FILE], { node: 'n1' });
    assert.match(urls.at(-1) ?? '', /&node=n1$/);
    await assert.rejects(run(['bench'], { node: 'n1' }), UsageError);
    body = { items: [], failures: [{ node: 'n1', message: 'off' }] };
    await assert.rejects(
      run(['bench', FILE]),
      /recording "2026-\S+" not found; nodes that returned no list: n1 \(off\)/,
    );
  });
});
