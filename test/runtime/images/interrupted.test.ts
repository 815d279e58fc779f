/** Downloads that stall, declare excessive sizes, or use mirrors; pins and exports. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { createImageStore, type RegistryOptions } from '../../../src/runtime/images/index.ts';
import { sha256, tarBytes } from '../../conformance/busybox-image.ts';
import { file, type OciImage, ociImage } from './archives.ts';

describe('interrupted image pulls', { skip: process.getuid?.() === 0 ? false : 'needs root', timeout: 120_000 }, () => {
  let scratch = '';
  let registry: Server;
  let host = '';
  let image: OciImage;
  let layerDigest = '';
  let claims: number | undefined;
  /** Number of bytes after which a layer stalls, one entry per stall. */
  let stalls: number[] = [];
  let ranges: (string | undefined)[] = [];
  let paths: string[] = [];
  let rounds = 0;

  const openStore = (registryOptions: Partial<RegistryOptions> = {}) =>
    createImageStore({
      root: join(scratch, `store${rounds}`),
      trees,
      log: silentLog,
      registry: { idleTimeoutMs: 300, ...registryOptions },
    });

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'he-interrupted-'));
    const layer = await tarBytes([file('noise', randomBytes(600_000).toString('base64'))]);
    layerDigest = sha256(layer);
    image = ociImage([{ bytes: layer, diffId: layerDigest }]);
    registry = createServer((request, response) => {
      const path = request.url ?? '';
      paths.push(path);
      if (path.includes('/manifests/')) {
        const manifest = JSON.parse(image.manifest.toString());
        if (claims !== undefined) manifest.layers[0].size = claims;
        response.end(JSON.stringify(manifest));
      } else if (path.endsWith(layerDigest)) {
        const { range } = request.headers;
        ranges.push(range);
        const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
        const headers = { 'content-range': `bytes ${from}-${layer.length - 1}/${layer.length}` };
        response.writeHead(from > 0 ? 206 : 200, from > 0 ? headers : {});
        const stall = stalls.shift();
        if (stall === undefined) response.end(layer.subarray(from));
        else response.write(layer.subarray(from, from + stall));
      } else response.end(image.config);
    });
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
    host = `127.0.0.1:${(registry.address() as AddressInfo).port}`;
  });

  beforeEach(() => {
    rounds += 1;
    claims = undefined;
    stalls = [];
    ranges = [];
    paths = [];
  });

  after(async () => {
    registry.closeAllConnections();
    registry.close();
    await rm(scratch, { recursive: true, force: true });
  });

  it('resumes an image pull after the registry has stalled, and reports progress', async () => {
    stalls = [200_000, 100_000];
    const progress: number[] = [];
    const store = openStore();
    await store.pull(`${host}/a:1`, undefined, (done, total) => progress.push(done / total));
    assert.deepEqual(ranges, [undefined, 'bytes=200000-', 'bytes=300000-']);
    assert.equal(progress.at(-1), 1);
    assert.deepEqual(await store.verify(), []);
  });

  it('an image pull fails when the registry stalls, and the next pull requests only the remaining bytes', async () => {
    stalls = [200_000, 0];
    await assert.rejects(openStore().pull(`${host}/a:1`, undefined), { code: 'image-pull', message: /timeout/i });
    assert.deepEqual(await readdir(join(scratch, `store${rounds}`, 'partial')), [layerDigest.slice('sha256:'.length)]);
    ranges = [];
    await openStore().pull(`${host}/a:1`, undefined);
    assert.deepEqual(ranges, ['bytes=200000-']);
    assert.deepEqual(await readdir(join(scratch, `store${rounds}`, 'partial')), []);
  });

  it('rejects an image layer that declares a size of 100 GB before requesting it', async () => {
    claims = 100 * 1024 ** 3;
    const message = /layer sha256:[0-9a-f]{64} has 107374182400 bytes, more than the limit of 64\.0 GiB$/;
    await assert.rejects(openStore().pull(`${host}/a:1`, undefined), { code: 'image-pull', message });
    assert.deepEqual(ranges, []);
  });

  it('an image pull requests the rewritten repository name from a mirror', async () => {
    const rewrites = { 'lab.invalid': [{ pattern: /^team\/(.*)/, replacement: 'copies/team-$1' }] };
    const id = await openStore({ mirrors: { 'lab.invalid': [host] }, rewrites }).pull(
      'lab.invalid/team/a:1',
      undefined,
    );
    assert.equal(id, sha256(image.config));
    assert.equal(paths[0], '/v2/copies/team-a/manifests/1');
  });

  it('lists an image as pinned until it is unpinned', async () => {
    const store = openStore();
    await store.pull(`${host}/a:1`, undefined);
    await store.pin(`${host}/a:1`, true);
    assert.equal((await store.list())[0]?.pinned, true);
    await store.pin(`${host}/a:1`, false);
    assert.equal((await store.list())[0]?.pinned, undefined);
    await assert.rejects(store.pin('missing:1', true), { code: 'image-not-found' });
  });

  it('removes unused images, except pinned images and images of containers', async () => {
    const store = openStore();
    const id = await store.pull(`${host}/a:1`, undefined);
    await store.pin(`${host}/a:1`, true);
    assert.deepEqual(await store.removeUnused(), []);
    await store.pin(`${host}/a:1`, false);
    await store.hold(id, 'container');
    assert.deepEqual(await store.removeUnused(), []);
    assert.equal((await store.list()).length, 1);
    await store.release('container');
    assert.deepEqual(
      (await store.removeUnused()).map((each) => each.repoTags),
      [[`${host}/a:1`]],
    );
    assert.deepEqual(await store.list(), []);
  });

  it('exports images to an archive that can be imported, and never overwrites an existing file', async () => {
    const store = openStore();
    await store.pull(`${host}/a:1`, undefined);
    const archive = join(scratch, `export${rounds}.tar`);
    await store.exportArchive([`${host}/a:1`], archive);
    await assert.rejects(store.exportArchive([`${host}/a:1`], archive), { message: /give a file that does not exist/ });
    rounds += 1;
    const other = openStore();
    assert.deepEqual((await other.importArchive(archive))[0]?.names, [`${host}/a:1`]);
    assert.deepEqual(await other.verify(), []);
  });
});
