/** Pulls from a real HTTP registry with tokens, redirects, platforms and all kinds of errors. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { silentLog } from '../../../../src/base/log.ts';
import { trees } from '../../../../src/runtime/directory-removal/index.ts';
import { createImageStore, type ImageStore, inspectImage, isConfigured } from '../../../../src/runtime/images/index.ts';
import { sha256, tarBytes } from '../../../conformance/busybox-image.ts';
import { file, type OciImage, ociImage } from '../archives.ts';

describe('image pulls', { skip: process.getuid?.() === 0 ? false : 'needs root', timeout: 30_000 }, () => {
  let scratch = '';
  let store: ImageStore;
  let registry: Server;
  let storage: Server;
  let host = '';
  let storageHost = '';
  let image: OciImage;
  let index: Buffer;
  let blobs: Map<string, Buffer>;
  let requests: string[] = [];
  let leaked: string | undefined;

  const listen = (server: Server): Promise<string> =>
    new Promise((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve(`127.0.0.1:${(server.address() as AddressInfo).port}`)),
    );

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'image-pull-'));
    const layers = await Promise.all([tarBytes([file('a', '1')]), tarBytes([file('b', '2'), file('.wh.a', '')])]);
    image = ociImage(layers.map((layer) => ({ bytes: gzipSync(layer), diffId: sha256(layer) })));
    const foreign = ociImage(
      layers.map((layer) => ({ bytes: gzipSync(layer), diffId: sha256(layer) })),
      's390x',
    );
    blobs = new Map(
      [image.config, image.manifest, foreign.config, foreign.manifest, ...image.layers].map((bytes) => [
        sha256(bytes),
        bytes,
      ]),
    );
    const entry = (each: OciImage, architecture: string) => ({
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      digest: sha256(each.manifest),
      size: each.manifest.length,
      platform: { os: 'linux', architecture },
    });
    const own = process.arch === 'x64' ? 'amd64' : process.arch;
    index = Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [entry(foreign, 's390x'), entry(image, own)] }));
    blobs.set(sha256(index), index);
    registry = createServer(serve);
    storage = createServer((request, response) => {
      leaked = request.headers.authorization;
      response.end(blobs.get(decodeURIComponent((request.url ?? '').slice(1))));
    });
    host = await listen(registry);
    storageHost = await listen(storage);
    store = createImageStore({ root: join(scratch, 'store'), trees, log: silentLog });
  });
  after(async () => {
    registry.closeAllConnections();
    storage.closeAllConnections();
    registry.close();
    storage.close();
    await rm(scratch, { recursive: true, force: true });
  });

  function serve(request: IncomingMessage, response: ServerResponse): unknown {
    const url = new URL(request.url ?? '', `http://${host}`);
    requests.push(url.pathname);
    const fail = (status: number, code: string, headers: Record<string, string> = {}): void => {
      response.writeHead(status, headers);
      response.end(JSON.stringify({ errors: [{ code, message: `about ${code}` }] }));
    };
    if (url.pathname === '/token') {
      const basic = request.headers.authorization;
      if (
        url.searchParams.get('scope')?.includes('private') &&
        basic !== `Basic ${Buffer.from('me:secret').toString('base64')}`
      )
        return fail(401, 'DENIED');
      response.end(
        JSON.stringify({ token: `for ${url.searchParams.get('scope')} at ${url.searchParams.get('service')}` }),
      );
      return undefined;
    }
    const match = /^\/v2\/([a-z0-9/-]+)\/(manifests|blobs)\/(.+)$/.exec(url.pathname);
    const [, name = '', kind = '', reference = ''] = match ?? [];
    if (name.startsWith('token/')) {
      const expected = `Bearer for repository:${name}:pull at lab`;
      if (request.headers.authorization !== expected) {
        return fail(401, 'UNAUTHORIZED', {
          'www-authenticate': `Bearer realm="http://${host}/token",service="lab",scope="repository:${name}:pull"`,
        });
      }
    }
    if (name === 'basic' && request.headers.authorization !== `Basic ${Buffer.from('me:secret').toString('base64')}`) {
      return fail(401, 'UNAUTHORIZED', { 'www-authenticate': 'Basic realm="lab"' });
    }
    if (name === 'forbidden') return fail(403, 'DENIED');
    if (name.startsWith('page/')) {
      response.writeHead(Number(name.slice('page/'.length)), { 'content-type': 'text/html' });
      response.end('<html>An error page of a proxy</html>');
      return undefined;
    }
    if (name === 'busy') return fail(503, 'UNAVAILABLE');
    if (name === 'endless') {
      response.writeHead(302, { location: url.pathname });
      response.end();
      return undefined;
    }
    if (name === 'downgrade') {
      response.writeHead(302, { location: 'ftp://127.0.0.1/x' });
      response.end();
      return undefined;
    }
    const bytes =
      kind === 'manifests' && reference === '1' ? (name === 'single' ? image.manifest : index) : blobs.get(reference);
    if (bytes === undefined) return fail(404, 'MANIFEST_UNKNOWN');
    const isLayer = kind === 'blobs' && bytes !== image.config;
    if (isLayer && name === 'token/redirect') {
      response.writeHead(307, { location: `http://${storageHost}/${encodeURIComponent(reference)}` });
      response.end();
      return undefined;
    }
    if (isLayer && name === 'swapped') {
      response.end(Buffer.alloc(bytes.length, 1));
      return undefined;
    }
    if (isLayer && name === 'longer') {
      response.end(Buffer.concat([bytes, Buffer.alloc(1_000_000)]));
      return undefined;
    }
    if (isLayer && name === 'cut') {
      response.writeHead(200, { 'content-length': String(bytes.length) });
      response.write(bytes.subarray(0, 20));
      setTimeout(() => response.destroy(), 20);
      return undefined;
    }
    if (kind === 'manifests' && name === 'giant') {
      response.end(Buffer.alloc(5 * 1024 * 1024, 0x20));
      return undefined;
    }
    if (kind === 'manifests' && name === 'proto') {
      response.end('{"__proto__":{"layers":[]},"schemaVersion":2}');
      return undefined;
    }
    response.end(bytes);
    return undefined;
  }

  const clean = async (): Promise<void> => {
    for (const each of await store.list()) await store.remove(each.id);
    requests = [];
  };

  it('pulls the manifest for this machine with a token, and follows redirects to other hosts without the token', async () => {
    await clean();
    leaked = undefined;
    const id = await store.pull(`${host}/token/redirect:1`, undefined);
    assert.equal(id, sha256(image.config));
    const status = await store.status(`${host}/token/redirect:1`);
    assert.deepEqual(status?.repoDigests, [`${host}/token/redirect@${sha256(index)}`]);
    assert.deepEqual(await store.verify(), []);
    assert.equal(leaked, undefined, 'the token stayed with the registry');
    const before = requests.length;
    await store.pull(`${host}/token/redirect@${sha256(index)}`, undefined);
    assert.ok(
      !requests.slice(before).some((path) => path.includes(sha256(image.layers[0] ?? Buffer.alloc(0)))),
      'layers that are there are not fetched again',
    );
  });

  it('inspects an image at configured registries without pulling its layers', async () => {
    const name = `${host}/token/redirect:1`;
    const named = { insecureRegistries: [host], mirrors: {} };
    assert.equal(isConfigured(name, named), true);
    assert.equal(isConfigured(name, { insecureRegistries: [], mirrors: { 'docker.io': [host] } }), false);
    const own = process.arch === 'x64' ? 'amd64' : process.arch;
    const found = await inspectImage(name, named, own);
    assert.equal(found.pullSpec, `${host}/token/redirect@${sha256(index)}`);
    assert.equal(found.configuration['Id'], sha256(image.config));
    assert.equal(found.layers.length, 2);
    await assert.rejects(inspectImage(`${host}/none:2`, named, own), { code: 'image-not-found' });
    const everywhere = { insecureRegistries: [host], mirrors: { '*': [host] } };
    const mirrored = await inspectImage('registry.invalid/token/redirect:1', everywhere, own);
    assert.equal(mirrored.pullSpec, `registry.invalid/token/redirect@${sha256(index)}`);
    // For a registry without its own configuration, only mirrors are queried.
    await assert.rejects(inspectImage('registry.invalid/none:2', everywhere, own), /127\.0\.0\.1:\d+ answered 404/);
  });

  it('an image pull authenticates if the registry requires it', async () => {
    await clean();
    await store.pull(`${host}/basic:1`, { username: 'me', password: 'secret' });
    await store.pull(`${host}/token/private:1`, { username: 'me', password: 'secret' });
    for (const name of ['basic', 'token/private']) {
      await assert.rejects(
        store.pull(`${host}/${name}:1`, { username: 'me', password: 'wrong' }),
        { code: 'image-pull-denied' },
        name,
      );
      await assert.rejects(store.pull(`${host}/${name}:1`, undefined), { code: 'image-pull-denied' }, name);
    }
  });

  it('an image pull uses the first mirror that responds', async () => {
    const mirrored = createImageStore({
      root: join(scratch, 'mirrored'),
      trees,
      log: silentLog,
      registry: { mirrors: { 'docker.io': ['127.0.0.1:1', host] } },
    });
    await mirrored.pull('single:1', undefined).catch(() => {});
    assert.ok(requests.includes('/v2/library/single/manifests/1'));
  });

  const failures: Readonly<Record<string, readonly [string, RegExp]>> = {
    'missing:2': ['image-not-found', /MANIFEST_UNKNOWN/],
    'forbidden:1': ['image-pull-denied', /about DENIED/],
    'page/401:1': ['image-pull-denied', /unsupported authentication scheme/],
    'page/403:1': ['image-pull-denied', /answered 403$/],
    'page/404:1': ['image-not-found', /answered 404$/],
    'page/502:1': ['image-pull', /answered 502$/],
    'busy:1': ['image-pull', /503/],
    'endless:1': ['image-pull', /redirects/],
    'downgrade:1': ['image-pull', /refused redirect to ftp:/],
    'swapped:1': ['image-pull', /has digest/],
    'longer:1': ['image-pull', /larger than/],
    'cut:1': ['image-pull', /blob sha256/],
    'giant:1': ['image-pull', /larger than/],
    'proto:1': ['image-pull', /neither an image manifest/],
  };
  for (const [name, [code, message]] of Object.entries(failures)) {
    it(`reports why the pull of ${name} fails`, async () => {
      await clean();
      await assert.rejects(store.pull(`${host}/${name}`, undefined), (error: Error & { code?: string }) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, message);
        return true;
      });
      assert.deepEqual(await store.list(), []);
      assert.deepEqual(await readdir(join(scratch, 'store/layers')), []);
      assert.deepEqual(
        (await readdir(join(scratch, 'store/tmp'))).filter((each) => each !== 'whiteout'),
        [],
      );
    });
  }

  it('an image pull reports an unreachable registry within seconds', async () => {
    const begin = performance.now();
    await assert.rejects(store.pull('127.0.0.1:9/x:1', undefined), {
      code: 'image-pull',
      message: /127\.0\.0\.1:9 cannot be reached/,
    });
    await assert.rejects(store.pull('registry.invalid/x:1', undefined), {
      code: 'image-pull',
      message: /registry\.invalid cannot be reached/,
    });
    assert.ok(performance.now() - begin < 6_000);
    await assert.rejects(store.pull('Not A Name', undefined), { code: 'image-invalid-name' });
  });
});
