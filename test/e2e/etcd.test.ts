/** The executable under the name etcd. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, executable, run } from './harness.ts';

let directory = '';
let etcd = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'etcd-link-'));
  etcd = join(directory, 'etcd');
  await symlink(executable, etcd);
});
after(() => rm(directory, { recursive: true }));

test('runs etcd through a link named etcd', async () => {
  const url = 'http://127.0.0.1:23979';
  // etcd is started as by a shell, which passes argv[0] without a directory.
  const env = { PATH: `${directory}:${process.env['PATH']}` };
  const args = [
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    '--listen-peer-urls=http://localhost:0',
  ];
  const child = spawn('etcd', [...args, '--name', 'linked'], { cwd: directory, env, stdio: 'ignore' });
  const exited = new Promise((resolve) => child.once('close', resolve));
  try {
    await eventually('an answer', 10_000, async () => {
      const health = await run('curl', ['-s', `${url}/health`]);
      return health.stdout === '{"health":"true","reason":""}' ? true : undefined;
    });
    const put = await run('etcdctl', ['--endpoints', url, 'put', 'a', 'b'], { env: { ETCDCTL_API: '3' } });
    assert.equal(put.stdout, 'OK\n', put.stderr);
    // The snapshot reader must also work in the packaged executable.
    const kept = ['--directory', join(directory, 'kept')];
    const saved = await run(executable, ['snapshot', 'save', '--endpoints', url, ...kept]);
    assert.match(saved.stdout, /etcd-2-\w+\.db: revision 2, /, saved.stderr);
    const [file = ''] = saved.stdout.split(':');
    assert.match((await run(executable, ['snapshot', 'list', ...kept])).stdout, / 2 .* yes\n$/);
    assert.match((await run(executable, ['snapshot', 'status', file, '-o', 'json'])).stdout, /"keys": 1,/);
    const data = join(directory, 'restored');
    const restored = await run(executable, ['snapshot', 'restore', file, '--data-dir', data]);
    assert.match(restored.stdout, /: revision 2, member default /, restored.stderr);
    assert.match((await run(executable, ['members', '--endpoints', url])).stdout, /linked +\w+ +leader +ok +0 /);
  } finally {
    child.kill('SIGTERM');
  }
  assert.equal(await exited, 0);
});

test("hyperedge etcd has etcd's version, help and exit codes", async () => {
  assert.match((await run(etcd, ['--version'])).stdout, /^etcd Version: 3\.\d+\.\d+\n/);
  assert.match((await run(etcd, ['--help'])).stdout, /--listen-client-urls 'http:\/\/localhost:2379'/);
  const unknown = await run(etcd, ['--frob']);
  assert.deepEqual(
    [unknown.code, unknown.stdout, unknown.stderr],
    [2, '', 'etcd: unknown flag --frob: see etcd --help\n'],
  );
  assert.equal((await run(etcd, ['--election-timeout=1'], { env: { ETCD_NAME: 'x' } })).code, 1);
});
