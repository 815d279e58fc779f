import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { bootstrapSchema } from '../../../src/host/config/bootstrap.ts';
import { readBootstrap } from '../../../src/host/config/bootstrap-files.ts';
import { effectiveFields, nestedFields } from '../../../src/host/config/effective.ts';
import { loadWithOrigins } from '../../../src/host/config/settings.ts';

const HEAD = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n';
let directory = '';
let file = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bootstrap-'));
  file = join(directory, 'bootstrap.yaml');
  await mkdir(`${file}.d`);
});
after(() => rm(directory, { recursive: true }));

const write = (name: string, body: string): Promise<void> => writeFile(join(directory, name), `${HEAD}${body}`);

test('merges drop-ins in name order: adds to mappings, and replaces lists and scalars', async () => {
  await write('bootstrap.yaml', 'roles: [master, etcd]\nlabels: {a: "1", b: "2"}\nports:\n  api: 9443\n');
  await write('bootstrap.yaml.d/20-late.yaml', 'labels: {b: "3"}\nroles: [node]\n');
  await write('bootstrap.yaml.d/10-early.yaml', 'roles: [etcd]\nports: {etcd: 3379}\n');
  await writeFile(join(directory, 'bootstrap.yaml.d/.hidden.yaml'), 'not: read\n');
  await writeFile(join(directory, 'bootstrap.yaml.d/note.txt'), 'not: read\n');
  const read = await readBootstrap(file);
  assert.deepEqual(read?.file.roles, ['node']);
  assert.deepEqual(read?.file.ports, { api: 9443, etcd: 3379 });
  assert.deepEqual(Object.fromEntries(read?.file.labels ?? []), { a: '1', b: '3' });
  assert.deepEqual(read?.paths, [file, `${file}.d/10-early.yaml`, `${file}.d/20-late.yaml`]);
  assert.equal(read?.origin(['roles']), `${file}.d/20-late.yaml:4`);
  assert.equal(read?.origin(['ports', 'api']), `${file}:6`);
  assert.equal(read?.origin(['ports', 'kubelet']), undefined);
});

test('rejects an invalid drop-in with its file, line and field', async () => {
  await write('bootstrap.yaml.d/30-wrong.yaml', 'labels: {}\nport: {}\n');
  await assert.rejects(readBootstrap(file), {
    code: 'bad-config',
    message: /30-wrong\.yaml:4: port: unknown field; known fields are apiVersion, kind, roles/,
  });
  await rm(`${file}.d/30-wrong.yaml`);
});

test('reports the effective settings with their origins and without secrets', async () => {
  const token = 'abcdef.0123456789abcdef';
  const join_ = `{server: "https://10.0.0.1:8443", token: ${token}, caHash: "sha256:${'0'.repeat(64)}"}`;
  await write('bootstrap.yaml.d/40-join.yaml', `join: ${join_}\nregistries: {docker.io: {mirrors: ["m:5000"]}}\n`);
  const { settings, files } = await loadWithOrigins({ config: file });
  const fields = effectiveFields(settings, files);
  assert.ok(!JSON.stringify(fields).includes(token));
  const origin = (name: string) => fields.find(({ path }) => path.join('.') === name)?.origin;
  assert.equal(origin('join.server'), `${file}.d/40-join.yaml:3`);
  assert.equal(origin('ports.kubelet'), 'default');
  assert.equal(origin('node.ip'), 'detected');
  const document = nestedFields(fields);
  assert.deepEqual(document['registries'], { 'docker.io': { mirrors: ['m:5000'] } });
  assert.equal((document['ports'] as { api: number }).api, 9443);
});

test('omits the text of an invalid token in errors', async () => {
  await write('bootstrap.yaml.d/40-join.yaml', 'join: {token: my-secret}\n');
  await assert.rejects(readBootstrap(file), (error: Error) => {
    assert.match(error.message, /40-join\.yaml:3: join\.token: the value is not accepted; give a token/);
    assert.ok(!error.message.includes('my-secret'));
    return true;
  });
});

test('examples/bootstrap.schema.json equals the output of hyperedge config schema', async () => {
  const published = await readFile(join(import.meta.dirname, '../../../examples/bootstrap.schema.json'), 'utf8');
  assert.deepEqual(JSON.parse(published), JSON.parse(JSON.stringify(bootstrapSchema())));
});
