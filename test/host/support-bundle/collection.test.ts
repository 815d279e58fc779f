import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { writeArchive } from '../../../src/host/support-bundle/archive.ts';
import { collectSections } from '../../../src/host/support-bundle/collect.ts';
import { isConfiguration } from '../../../src/host/support-bundle/configuration-files.ts';
import { collectFile, filesBelow } from '../../../src/host/support-bundle/files.ts';
import { SecretValues, secretsOfHost } from '../../../src/host/support-bundle/known-secrets.ts';
import { collectPrograms } from '../../../src/host/support-bundle/programs.ts';
import { createSpool } from '../../../src/host/support-bundle/spool.ts';
import { createKnownValues } from '../../../src/support-bundle/core/index.ts';
import type { Section, SectionSink } from '../../../src/support-bundle/port.ts';

const exec = promisify(execFile);
const never = new AbortController().signal;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'support-bundle-'));
});
after(() => rm(directory, { recursive: true, force: true }));

let count = 0;
async function spoolFor(secrets: readonly string[] = []) {
  count += 1;
  const place = join(directory, `spool-${count}`);
  await mkdir(place);
  return { place, spool: createSpool(place, createKnownValues(secrets)) };
}

function section(collect: Section['collect'], limits: Partial<Section> = {}): Section {
  return { id: 'test', title: 'Test', timeoutMs: 60_000, maxBytes: 1 << 20, ...limits, collect };
}

test('keeps the newest lines of a long log and reports the omitted amount', async () => {
  const { place, spool } = await spoolFor();
  const lines = Array.from({ length: 20_000 }, (_, number) => `line ${number}\n`);
  const [report] = await collectSections(
    [section((sink) => sink.stream('log.txt', lines, { keepEnd: true, maxBytes: 50_000 }))],
    spool,
    never,
  );
  const [entry] = report?.entries ?? [];
  const text = await readFile(join(place, 'log.txt'), 'utf8');
  assert.ok(text.endsWith('line 19998\nline 19999\n'));
  assert.ok(text.length <= 50_000 && text.length > 25_000, String(text.length));
  assert.equal(entry?.bytes, text.length);
  assert.match(entry?.cut ?? '', /the oldest \d+ bytes are left out/);
});

test('redacts secrets before writing, also a secret that is split across two chunks', async () => {
  const { place, spool } = await spoolFor(['planted-value-1']);
  const pieces = ['a plan', 'ted-value-1 b\npassw', 'ord=planted-2\n', '{"kind":"Secret","data":{"x":"planted-3"}}\n'];
  await collectSections([section((sink) => sink.stream('x.txt', pieces))], spool, never);
  const text = await readFile(join(place, 'x.txt'), 'utf8');
  assert.ok(!text.includes('planted'), text);
  assert.match(text, /^a <removed> b\n/);
});

test('keeps only the field names of a document that cannot be parsed', async () => {
  const { place, spool } = await spoolFor();
  const text = 'env:\n- name: A\n  value: planted\n  bad: [\n';
  await collectSections([section((sink) => sink.stream('x.yaml', [text], { format: 'document' }))], spool, never);
  const stored = await readFile(join(place, 'x.yaml'), 'utf8');
  assert.ok(!stored.includes('planted'), stored);
  assert.match(stored, /^# Not parsed/);
  assert.match(stored, /value: <removed>/);
});

test('a section that fails or hangs leaves a file with the reason and does not stop other sections', async () => {
  const { place, spool } = await spoolFor(['planted-value-1']);
  const reports = await collectSections(
    [
      section(
        async (sink) => {
          await sink.stream('early.txt', ['early\n']);
          await new Promise(() => {});
        },
        { id: 'hangs', timeoutMs: 100 },
      ),
      section(() => Promise.reject(new Error('broken: planted-value-1')), { id: 'fails' }),
      section((sink) => sink.stream('good.txt', ['good\n']), { id: 'good' }),
    ],
    spool,
    never,
  );
  assert.deepEqual(
    reports.map(({ id, problems }) => [id, problems.length]),
    [
      ['hangs', 1],
      ['fails', 1],
      ['good', 0],
    ],
  );
  assert.match(await readFile(join(place, 'problems/hangs.txt'), 'utf8'), /not complete within 0.1 s/);
  assert.match(await readFile(join(place, 'problems/fails.txt'), 'utf8'), /broken: <removed>/);
  assert.ok(!JSON.stringify(reports).includes('planted'));
  assert.equal(await readFile(join(place, 'early.txt'), 'utf8'), 'early\n');
  assert.equal(await readFile(join(place, 'good.txt'), 'utf8'), 'good\n');
});

test('an interrupt cancels a section that hangs', async () => {
  const { spool } = await spoolFor();
  const stop = new AbortController();
  setTimeout(() => stop.abort(new Error('interrupted')), 100);
  await assert.rejects(
    collectSections([section(() => new Promise(() => {}), { timeoutMs: 60_000 })], spool, stop.signal),
    /interrupted/,
  );
});

test('collects regular files only: follows no links and reads no devices', async () => {
  const place = join(directory, 'tree');
  await mkdir(join(place, 'inner'), { recursive: true });
  await writeFile(join(directory, 'outside'), 'outside');
  await writeFile(join(place, 'inner/a.txt'), 'a\n');
  await symlink(join(directory, 'outside'), join(place, 'link.txt'));
  await symlink(directory, join(place, 'linked'));
  await exec('mkfifo', [join(place, 'pipe.txt')]);
  assert.deepEqual(
    (await filesBelow(place, 100)).map(({ path }) => path),
    [join(place, 'inner/a.txt')],
  );
  const { spool } = await spoolFor();
  const [report] = await collectSections(
    [
      section(async (sink) => {
        for (const name of ['link.txt', 'pipe.txt', 'missing.txt'])
          await collectFile(sink, join(place, name), name, never, { maxBytes: 100 });
      }),
    ],
    spool,
    never,
  );
  assert.equal(report?.problems.length, 2, JSON.stringify(report));
  assert.match(report?.problems[0] ?? '', /link\.txt: ELOOP/);
  assert.match(report?.problems[1] ?? '', /pipe\.txt: is not a regular file/);
});

test('reports programs that are missing, fail or exceed the time limit', async () => {
  const { place, spool } = await spoolFor();
  const program = (to: string, ...command: string[]) => ({ to, command });
  const [report] = await collectSections(
    [
      section(
        (sink, signal) =>
          collectPrograms(
            sink,
            [
              program('no.txt', 'no-such-program-here'),
              program('bad.txt', 'sh', '-c', 'echo out; echo reason >&2; exit 4'),
              program('slow.txt', 'sh', '-c', 'echo begun; sleep 60'),
              program('env.txt', 'env'),
            ],
            signal,
            700,
          ),
        { timeoutMs: 20_000 },
      ),
    ],
    spool,
    never,
  );
  assert.equal(report?.problems.length, 3, JSON.stringify(report?.problems));
  assert.match(report?.problems[0] ?? '', /the program no-such-program-here is not installed/);
  assert.match(report?.problems[1] ?? '', /exit code 4: reason/);
  assert.match(report?.problems[2] ?? '', /the program did not exit within the time limit/);
  assert.equal(await readFile(join(place, 'slow.txt'), 'utf8'), 'begun\n');
  assert.ok(!(await readFile(join(place, 'env.txt'), 'utf8')).includes('NODE_'));
});

test('the archive respects its size limit: the last files are truncated or omitted, with a note in the index', async () => {
  const { place, spool } = await spoolFor();
  // Text that does not compress.
  const noise = (bytes: number): string =>
    Array.from({ length: bytes / 8 }, () => Math.random().toString(36).slice(2, 9)).join('\n');
  const shown: [number, number][] = [];
  const onProgress = (done: number, total: number): void => void shown.push([done, total]);
  const sections = await collectSections(
    ['a', 'b', 'c'].map((id) => section((sink: SectionSink) => sink.stream(`${id}.txt`, [noise(1 << 20)]), { id })),
    spool,
    never,
    onProgress,
  );
  assert.deepEqual(shown.splice(0), [
    [1, 3],
    [2, 3],
    [3, 3],
  ]);
  const bytes = sections.flatMap(({ entries }) => entries).map((entry) => entry.bytes);
  const to = join(directory, 'limited.tar.gz');
  const maxBytes = (1 << 20) + 900_000;
  const report = await writeArchive(
    { host: 'h', version: 'v', time: 't', since: 's', knownSecrets: 0, sections },
    { from: place, to, name: 'top', maxBytes, mtime: new Date(0), onProgress },
  );
  const all = bytes.reduce((sum, each) => sum + each, 0);
  assert.deepEqual([shown.length, shown[0], shown.at(-1)], [3, [bytes[0], all], [all, all]]);
  const { size, mode } = await stat(to);
  assert.ok(size <= maxBytes && size > 300_000, String(size));
  assert.equal(mode & 0o777, 0o600);
  await exec('tar', ['xzf', to, '-C', directory]);
  const page = await readFile(join(directory, 'top/index.html'), 'utf8');
  assert.match(page, /the bundle is full/);
  for (const [, path = ''] of page.matchAll(/href="([^"#]+)"/g)) await stat(join(directory, 'top', path));
  const cuts = report.sections.flatMap(({ entries }) => entries.map(({ cut }) => cut));
  assert.equal(cuts[0], undefined);
  assert.match(cuts.at(-1) ?? '', /left out/);
});

test('finds the secrets of keys, kubeconfigs, mounted Secrets and running containers', async () => {
  const root = join(directory, 'root');
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), text);
  };
  const key = '-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n';
  await write('etc/origin/master/ca.key', key);
  await write(
    'etc/origin/master/admin.kubeconfig',
    `users: [{user: {client-key-data: ${btoa(key)}, token: tok-value-1}}]`,
  );
  await write('etc/origin/node/gossip-keyring.json', '["ring-key-in-base64=="]');
  await write('etc/origin/master/ldap.pw', 'bind-value-1\n');
  await write('etc/origin/bootstrap.yaml', 'proxy: {httpsProxy: "http://u:proxy%2Dpass@h:1"}\n');
  await write('var/volumes/pods/u/volumes/kubernetes.io~secret/s/..1/password', 'mounted-value');
  await write('var/volumes/pods/u/volumes/kubernetes.io~configmap/s/..1/x', 'public-value');
  await write('var/c/containers/id/config.json', '{"process":{"env":["API_TOKEN=env-value-1","PATH=/bin"]}}');
  const found = new SecretValues();
  await secretsOfHost({ root, volumes: join(root, 'var/volumes'), containers: join(root, 'var/c') }, found);
  for (const value of [
    key,
    'tok-value-1',
    'ring-key-in-base64==',
    'proxy-pass',
    'mounted-value',
    'env-value-1',
    'bind-value-1',
  ])
    assert.ok(
      [...found.values].some((each) => each.trim() === value.trim()),
      value,
    );
  assert.ok(!found.values.has('public-value'));
});

test('omits files below the configuration that may contain a password', () => {
  const [configuration, others] = [
    [
      'etc/origin/bootstrap.yaml',
      'etc/sysconfig/hyperedge',
      'etc/containers/policy.json',
      'etc/origin/master/x.kubeconfig',
    ],
    [
      'etc/origin/master/ldap.pw',
      'etc/origin/master/sso.secret',
      'etc/origin/master/ca.key',
      'etc/origin/users.htpasswd',
    ],
  ];
  assert.ok(configuration?.every(isConfiguration));
  assert.ok(!others?.some(isConfiguration));
});
