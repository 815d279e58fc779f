/** Kustomizations of another author, for example from a Git repository, which can contain links. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Outcome } from './calls.ts';
import { runClient } from './run-client.ts';

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-kustomize-'));
  await writeFile(join(root, 'id_rsa'), 'PRIVATE');
  await mkdir(join(root, 'keys'));
  await writeFile(join(root, 'keys', 'key'), 'PRIVATE');
});
after(() => rm(root, { recursive: true, force: true }));

let count = 0;
async function kustomize(text: string, links: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  count += 1;
  const directory = join(root, `repository-${count}`);
  await mkdir(directory);
  await writeFile(join(directory, 'kustomization.yaml'), text);
  await writeFile(join(directory, 'inner'), 'PUBLIC');
  for (const [name, target] of Object.entries(links)) await symlink(target, join(directory, name));
  return runClient(['kustomize', directory]);
}
const generator = (file: string): string => `configMapGenerator:\n- name: a\n  files: [${file}]\n`;

test('does not follow links out of the directory of a kustomization', async () => {
  const cases: readonly (readonly [file: string, links: Readonly<Record<string, string>>])[] = [
    ['../id_rsa', {}],
    ['link', { link: '../id_rsa' }],
    ['link', { link: join(root, 'id_rsa') }],
    ['link', { link: 'second', second: '../id_rsa' }],
    ['keys/key', { keys: '../keys' }],
  ];
  for (const [file, links] of cases) {
    const { code, stdout, stderr } = await kustomize(generator(file), links);
    assert.match(stderr, /security; file '.*' is not in or below '.*repository-/, file);
    assert.deepEqual([code, stdout], [1, ''], file);
  }
  const { stdout } = await kustomize(generator('link'), { link: 'inner' });
  assert.match(stdout, /link: PUBLIC/);
});

test('reports a cycle of links and of components', { timeout: 20_000 }, async () => {
  for (const [text, links] of [
    ['resources: [loop, other]\n', { loop: '.', other: '.' }],
    ['kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\ncomponents: [loop]\n', { loop: '.' }],
  ] as const) {
    const { code, stderr } = await kustomize(text, links);
    assert.match(stderr, /cycle detected/);
    assert.equal(code, 1);
  }
});
