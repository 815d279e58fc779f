/** Copies of catalogs on three masters: a real API server and lifecycle manager, and the host part of each master. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createInformerFactory } from '../../../src/client/index.ts';
import { followCatalogs } from '../../../src/host/openshift/catalog-copies.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import { CatalogCopies } from '../../../src/openshift/operators/olm/io/index.ts';
import { startServer, type TestServer } from '../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../controllers/harness.ts';

const MASTERS = ['m1', 'm2', 'm3'] as const;
const NAMESPACE = 'openshift-marketplace';
const LOOK_MS = 100;

describe('copies of a catalog on masters', () => {
  let root: string;
  let api: TestServer;
  let plane: ControlPlane;
  const stops = new Map<string, () => Promise<void>>();

  const directory = (master: string): string => join(root, master);
  const text = (master: string): Promise<string> =>
    readFile(join(directory(master), 'lab/catalog.json'), 'utf8').catch(() => 'none');
  const blob = (name: string): string => JSON.stringify({ schema: 'olm.package', name, defaultChannel: 'stable' });
  /** Writes a catalog atomically, as the guide recommends. */
  const write = async (master: string, name: string): Promise<void> => {
    await mkdir(join(directory(master), 'lab'), { recursive: true });
    const path = join(directory(master), '.new.json');
    await writeFile(path, blob(name));
    await rename(path, join(directory(master), 'lab/catalog.json'));
  };
  const condition = async () => {
    const { status } = await plane.of(resources.catalogSources).get('lab', NAMESPACE);
    return status?.conditions?.find(({ type }) => type === 'CopiesEqual');
  };
  const untilAll = (name: string): Promise<unknown> =>
    eventually(
      async () => {
        assert.deepEqual(await Promise.all(MASTERS.map(text)), [blob(name), blob(name), blob(name)]);
        assert.equal((await condition())?.status, 'True', (await condition())?.message);
        return true;
      },
      `copies of ${name}`,
      20_000,
    );

  const start = async (master: string): Promise<void> => {
    const client = await plane.clientAs(`system:node:${master}`, 'system:nodes');
    const pair = await api.user(`system:node:${master}`, 'system:nodes');
    const informers = createInformerFactory({ client, log: silentLog, clock, random });
    const stop = await followCatalogs({
      directory: directory(master),
      nodeName: toNodeName(master),
      client,
      informers,
      log: silentLog,
      pollMs: LOOK_MS,
      masters: {
        servers: async () => [api.url],
        credentials: () => ({ ca: api.ca.certPem, cert: pair.certPem, key: pair.keyPem }),
      },
    });
    stops.set(master, async () => {
      stop();
      await informers.stop();
    });
  };

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'he-masters-'));
    for (const master of MASTERS) await mkdir(directory(master));
    const served = MASTERS.map((master) => new CatalogCopies(directory(master)));
    api = await startServer({
      releases: {
        open: async () => undefined,
        openCatalog: async (sha256) => {
          for (const copies of served) {
            const found = await copies.open(sha256);
            if (found !== undefined) return found;
          }
          return undefined;
        },
      },
    });
    plane = await startControlPlane({
      api,
      catalogs: directory('m1'),
      controllers: { nodeMonitorGracePeriodMs: 3_600_000, nodeStartupGracePeriodMs: 3_600_000 },
    });
    for (const master of MASTERS) {
      await plane.addNode(master, ({ metadata }) => {
        if (metadata !== undefined) metadata.labels = { 'node-role.kubernetes.io/master': '' };
      });
      await start(master);
    }
    await plane.addNode('worker');
    await plane.of(resources.namespaces).create({ metadata: { name: NAMESPACE } });
    await plane.of(resources.catalogSources).create({
      metadata: { name: 'lab', namespace: NAMESPACE },
      spec: {
        sourceType: 'grpc',
        address: 'file:///var/lib/origin/catalogs/lab',
        updateStrategy: { registryPoll: { interval: '1s' } },
      },
    });
  });
  after(async () => {
    for (const stop of stops.values()) await stop();
    await plane.stop();
    await api.stop();
    await rm(root, { recursive: true, force: true });
  });

  it('copies a catalog from the only master with a copy to all other masters, including the leader', async () => {
    await write('m2', 'one');
    await untilAll('one');
    await eventually(
      async () =>
        (await plane.of(resources.catalogSources).get('lab', NAMESPACE)).status?.connectionState?.lastObservedState ===
        'READY',
      'a catalog that is read',
    );
  });

  it('copies an edit on any master to all other masters, including a master that was off', async () => {
    await write('m3', 'two');
    await untilAll('two');
    await stops.get('m2')?.();
    for (const name of ['three', 'four']) {
      await write('m1', name);
      await eventually(async () => (await text('m3')) === blob(name), `${name} on m3`, 20_000);
    }
    assert.equal(await text('m2'), blob('two'));
    await start('m2');
    await untilAll('four');
  });

  it('reports simultaneous edits on two masters as a conflict until a copy is removed', async () => {
    await Promise.all([write('m2', 'left'), write('m3', 'right')]);
    const found = await eventually(
      async () => {
        const each = await condition();
        return each?.reason === 'CopiesConflict' ? each : undefined;
      },
      'a conflict',
      20_000,
    );
    assert.match(found.message, /copies were edited on several masters: .* remove the directory from the masters/);
    assert.deepEqual(await Promise.all([text('m2'), text('m3')]), [blob('left'), blob('right')]);
    await rm(join(directory('m2'), 'lab'), { recursive: true });
    await untilAll('right');
  });

  it('ignores reports of other nodes, and denies users access to catalogs of hosts', async () => {
    const annotations = {
      'hyperedge.dev/catalogs': JSON.stringify({ lab: `sha256:${'0'.repeat(64)}` }),
      'hyperedge.dev/catalog-versions': JSON.stringify({ lab: 'zzz' }),
    };
    await plane.of(resources.nodes).patch('worker', undefined, 'merge', { metadata: { annotations } });
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    assert.equal((await condition())?.status, 'True');
    const [digest = ''] = Object.values(await new CatalogCopies(directory('m1')).digests());
    const path = `/hyperedge/catalogs/sha256/${digest.slice('sha256:'.length)}`;
    const user = await plane.clientAs('bob');
    await assert.rejects(user.request('GET', path), /forbidden/);
    await assert.rejects(plane.admin.request('GET', path.replace(/[0-9a-f]{64}$/, '0'.repeat(64))), /could not find/);
  });

  it('does not copy a catalog without a CatalogSource', async () => {
    await plane.of(resources.catalogSources).delete('lab', NAMESPACE);
    await rm(join(directory('m3'), 'lab'), { recursive: true });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.equal(await text('m3'), 'none');
    assert.deepEqual(
      (await readdir(directory('m2'))).filter((name) => name !== '.versions.json'),
      ['lab'],
    );
  });
});
