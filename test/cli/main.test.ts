import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bytesText } from '../../src/base/text/bytes-text.ts';
import { KUBERNETES_VERSION, PRODUCT_VERSION } from '../../src/base/versions/version.ts';
import { main } from '../../src/cli/index.ts';
import { printTable } from '../../src/cli/printers.ts';

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function hyperedge(argv: readonly string[], argv0 = 'hyperedge'): Promise<Ran> {
  let stdout = '';
  let stderr = '';
  const code = await main({
    argv,
    argv0,
    out: {
      stdout: (text) => {
        stdout += text;
      },
      stderr: (text) => {
        stderr += text;
      },
    },
  });
  return { code, stdout, stderr };
}

async function withRoot(body: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'cli-'));
  try {
    await body(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

test('prints the version in each format', async () => {
  const plain = await hyperedge(['version']);
  assert.equal(plain.code, 0);
  assert.match(
    plain.stdout,
    new RegExp(
      `^hyperedge ${PRODUCT_VERSION} \\(Kubernetes ${KUBERNETES_VERSION.gitVersion.replace('+', '\\+')}, Node v24`,
    ),
  );
  assert.equal(JSON.parse((await hyperedge(['version', '-o', 'json'])).stdout).hyperedge, PRODUCT_VERSION);
  assert.match((await hyperedge(['version', '-o', 'yaml'])).stdout, /^hyperedge: /);
  assert.equal((await hyperedge(['version', '-o', 'xml'])).code, 2);
});

test('version --licenses in a source checkout refers to the packaged executable', async () => {
  const { code, stdout, stderr } = await hyperedge(['version', '--licenses']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^hyperedge: licenses: only the packaged executable .*npm run build\n$/);
});

test('writes all output to a slow reader of a pipe', async () => {
  const source = `process.argv.splice(1, 9, 'hyperedge', 'api', '--help');
    await import(${JSON.stringify(join(import.meta.dirname, '../../src/main.ts'))});`;
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `const { stdout } = process;
    const { write } = stdout;
    stdout.write = (text, ...rest) => write.call(stdout, text === '' ? '' : text + 'x'.repeat(1_000_000), ...rest);
    ${source}`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'exit');
  await new Promise((resolve) => setTimeout(resolve, 1500));
  let bytes = 0;
  for await (const piece of child.stdout) bytes += piece.length;
  assert.deepEqual(await ended, [0, null]);
  assert.ok(bytes > 1_000_000, `${bytes} bytes`);
});

test('exits with code 2 and one line for usage errors', async () => {
  for (const argv of [
    ['frobnicate'],
    ['join'],
    ['snapshot', 'frob'],
    ['snapshot', 'restore'],
    ['snapshot', 'push', 'x.db'],
    ['members', 'add', 'x'],
    ['members', 'frob'],
    ['image', 'frob'],
    ['version', '--frob'],
    ['image', 'import'],
    ['master-restart', 'everything'],
    ['run', '--loglevel', '11'],
    ['run', '--loglevel'],
    ['version', 'x'],
    ['status', '-o', 'table'],
    ['__proto__'],
    ['constructor'],
  ]) {
    const { code, stderr, stdout } = await hyperedge(argv);
    assert.equal(code, 2, argv.join(' '));
    assert.equal(stdout, '');
    assert.match(stderr, /^hyperedge: .+\n$/, argv.join(' '));
    assert.equal(stderr.trim().split('\n').length, 1, stderr);
  }
  assert.match((await hyperedge(['join'])).stderr, /unknown command "join"/);
});

test('prints help for the program and for each command', async () => {
  const overview = await hyperedge(['--help']);
  assert.equal(overview.code, 0);
  for (const name of [
    'run',
    'etcd',
    'api',
    'controllers',
    'image import',
    'image list',
    'image remove',
    'image verify',
    'master-restart',
    'master-logs',
    'status',
    'version',
  ]) {
    assert.ok(overview.stdout.includes(`  ${name} `), name);
    const help = await hyperedge([...name.split(' '), '--help']);
    assert.equal(help.code, 0, name);
    assert.match(help.stdout, new RegExp(`^Usage: hyperedge ${name}`));
  }
  assert.equal((await hyperedge([])).code, 2);
  assert.equal((await hyperedge(['image', '--help'])).code, 0);
});

test('a link to the executable runs the command of its name', () =>
  withRoot(async (root) => {
    const directory = join(root, 'var/log/pods/kube-system_master-api-n1_abc/api');
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, '0.log'), '2026-01-01T00:00:00Z stderr F old\n');
    await writeFile(
      join(directory, '1.log'),
      '2026-01-01T00:00:00Z stderr F one\n2026-01-01T00:00:01Z stdout P tw\n2026-01-01T00:00:02Z stdout F o\n2026-01-01T00:00:03Z stderr F three\n',
    );
    const logs = await hyperedge(['api', 'api', '--root', root], '/usr/local/bin/master-logs');
    assert.deepEqual([logs.code, logs.stdout, logs.stderr], [0, 'two\n', 'one\nthree\n']);
    const tail = await hyperedge(['master-logs', 'api', '--tail', '1', '--root', root]);
    assert.deepEqual([tail.stdout, tail.stderr], ['', 'three\n']);
    const previous = await hyperedge(['master-logs', 'api', 'api', '-p', '--root', root]);
    assert.equal(previous.stderr, 'old\n');
    const none = await hyperedge(['master-logs', 'etcd', 'etcd', '--root', root]);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /etcd has no log below/);
  }));

test('reports that the host process is not running', () =>
  withRoot(async (root) => {
    for (const argv of [['status'], ['master-restart', 'api']]) {
      const { code, stderr } = await hyperedge([...argv, '--root', root]);
      assert.equal(code, 1);
      assert.match(stderr, /^hyperedge: the host process does not run here/);
    }
  }));

test('reports a missing configuration in one line, with a stack trace for --verbose', () =>
  withRoot(async (root) => {
    const entry = join(import.meta.dirname, '../../src/main.ts');
    const run = (...argv: string[]): Promise<Ran> =>
      new Promise((resolve) => {
        execFile(process.execPath, [entry, ...argv], (error, stdout, stderr) => {
          resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
        });
      });
    const plain = await run('run', '--root', root, '--config', join(root, 'none.yaml'));
    assert.equal(plain.code, 1);
    assert.match(plain.stderr, /^hyperedge: .*none\.yaml does not exist; .*\n$/);
    const verbose = await run('run', '--root', root, '--config', join(root, 'none.yaml'), '--verbose');
    assert.match(verbose.stderr, /\n {4}at /);
  }));

test('formats tables and sizes of command output', () => {
  assert.equal(printTable(['A', 'LONGER'], [['value', 'x']]), 'A       LONGER\nvalue   x\n');
  assert.deepEqual(
    [0, 1023, 1536, 5 * 1024 ** 3].map((bytes) => bytesText(bytes)),
    ['0B', '1023B', '1.5KiB', '5.0GiB'],
  );
});

test('selects the component by the first argument of hyperkube, or by the name of the link', async () => {
  assert.match((await hyperedge(['kube-proxy', '--help'], 'hyperkube')).stdout, /^Usage: hyperedge proxy /);
  assert.match((await hyperedge(['--help'], 'kube-proxy')).stdout, /^Usage: hyperedge proxy /);
  assert.match((await hyperedge(['--help'], '/usr/local/bin/openshift-node')).stdout, /^Usage: hyperedge run /);
  assert.match((await hyperedge(['--help'], 'kube-scheduler')).stdout, /^Usage: hyperedge controllers /);
  assert.equal((await hyperedge(['boss'], 'hyperkube')).code, 2);
});

test('rejects install from source and incomplete join flags with one line', async () => {
  const half = await hyperedge(['install', '--join', 'https://10.0.0.1:8443']);
  assert.equal(half.code, 2);
  assert.equal(
    half.stderr,
    'hyperedge: give --join, --token and --ca-hash together, as hyperedge token create prints them\n',
  );
  const source = await hyperedge(['install']);
  assert.equal(source.code, 1);
  assert.equal(source.stderr, 'hyperedge: install: this is a start from source; run npm run build first\n');
});

test('config check and config show report file, line and field of an error', () =>
  withRoot(async (root) => {
    const file = join(root, 'etc/origin/bootstrap.yaml');
    assert.match((await hyperedge(['config', 'check', '--root', root])).stdout, /does not exist; the defaults apply/);
    await mkdir(join(root, 'etc/origin'), { recursive: true });
    await writeFile(file, 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nports: {api: 9443}\n');
    assert.equal((await hyperedge(['config', 'check', '--root', root])).stdout, `${file}: ok\n`);
    assert.match(
      (await hyperedge(['config', 'show', '--root', root])).stdout,
      /^ports\.api +9443 +.*bootstrap\.yaml:3$/m,
    );
    await writeFile(file, 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nports: {ap: 9443}\n');
    const wrong = await hyperedge(['config', 'check', '--root', root]);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /bootstrap\.yaml:3: ports\.ap: unknown field/);
  }));
