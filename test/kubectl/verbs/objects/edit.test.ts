/** `edit` with editors that fail or write an invalid file. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startServer } from '../../../apiserver/harness.ts';
import { runClient } from '../../run-client.ts';

describe('edit', () => {
  let server: Awaited<ReturnType<typeof startServer>>;
  let directory = '';
  const editor = process.env['EDITOR'];

  before(async () => {
    server = await startServer();
    directory = await mkdtemp(join(tmpdir(), 'he-edit-test-'));
    process.env['KUBECACHEDIR'] = directory;
    await client('create', 'configmap', 'one', '--from-literal=a=b');
  });
  after(async () => {
    if (editor === undefined) delete process.env['EDITOR'];
    else process.env['EDITOR'] = editor;
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  });

  const client = (...args: string[]) => runClient(['--kubeconfig', server.kubeconfig, ...args]);

  /** Runs `edit` with a shell script as the editor. `$1` is the file. */
  async function edit(script: string, ...args: string[]): ReturnType<typeof client> {
    const path = join(directory, 'editor');
    await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    process.env['EDITOR'] = path;
    return client('edit', ...(args.length === 0 ? ['configmap', 'one'] : args));
  }

  test('reports the editor that failed and changes nothing', async () => {
    const { code, stderr } = await edit('exit 1');
    assert.equal(code, 1);
    assert.equal(stderr, `error: there was a problem with the editor "${join(directory, 'editor')}"\n`);
  });

  test('reports on stderr that the file was not changed or is empty', async () => {
    assert.deepEqual(await edit('true'), { code: 0, stdout: '', stderr: 'Edit cancelled, no changes made.\n' });
    assert.deepEqual(await edit(': > "$1"'), {
      code: 0,
      stdout: '',
      stderr: 'Edit cancelled, saved file was empty.\n',
    });
  });

  for (const [what, script] of [
    ['cannot be parsed', 'sed -i "s/^data:/data:x/" "$1"'],
    ['is invalid', 'sed -i "s/^  a: b/  a: [b]/" "$1"'],
  ] as const)
    test(`stores the changes when the edited file ${what}`, async () => {
      const { code, stderr } = await edit(script);
      assert.equal(code, 1);
      const [, path = ''] = /A copy of your changes has been stored to "(.+)"\n/.exec(stderr) ?? [];
      assert.match(stderr, /\nerror: Edit cancelled, no valid changes were saved\.\n$/);
      assert.match(await readFile(path, 'utf8'), /data:x|a: \[b\]/);
      await rm(dirname(path), { recursive: true });
    });

  test('saves a valid change', async () => {
    const { code, stdout } = await edit('sed -i "s/^  a: b/  a: c/" "$1"');
    assert.equal(code, 0);
    assert.equal(stdout, 'configmap/one edited\n');
  });

  test('changes only the subresource that is named, as replace does', async () => {
    const read = async (): Promise<{ spec: { replicas: number }; status: { replicas?: number } }> =>
      JSON.parse((await client('get', 'deployment', 'web', '-o', 'json')).stdout);
    await client('create', 'deployment', 'web', '--image=registry.example/web:1');
    const script = 'sed -i "s/^  replicas: 1/  replicas: 4/; s/^status:.*/status: {replicas: 7}/" "$1"';
    const edited = await edit(script, 'deployment', 'web', '--subresource=status');
    assert.equal(edited.stdout, 'deployment.apps/web edited\n', edited.stderr);
    assert.deepEqual([(await read()).spec.replicas, (await read()).status.replicas], [1, 7]);

    const file = join(directory, 'web.json');
    const object = await read();
    await writeFile(
      file,
      JSON.stringify({ ...object, spec: { ...object.spec, replicas: 4 }, status: { replicas: 8 } }),
    );
    const replaced = await client('replace', '-f', file, '--subresource=status');
    assert.equal(replaced.stdout, 'deployment.apps/web replaced\n', replaced.stderr);
    assert.deepEqual([(await read()).spec.replicas, (await read()).status.replicas], [1, 8]);
    assert.match((await client('replace', '-f', file, '--subresource=status', '--force')).stderr, /can not be used/);
  });
});
