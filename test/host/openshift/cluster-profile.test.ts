import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createApiClient, createInformerFactory, type InformerFactory } from '../../../src/client/index.ts';
import { parseClusterSettings, publishedSettings, readJoined, writeJoined } from '../../../src/host/config/joined.ts';
import { loadSettings } from '../../../src/host/config/settings.ts';
import { followSettings } from '../../../src/host/node/shown-settings.ts';
import { followProfile, profileOfHost } from '../../../src/host/openshift/cluster-profile.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import { DEFAULT_KUBELET_CONFIG, type KubeletConfig } from '../../../src/kubelet/index.ts';
import { startServer, type TestServer } from '../../apiserver/harness.ts';
import { eventually } from '../../controllers/harness.ts';

const MAP = { namespace: 'kube-system', name: 'hyperedge-config' } as const;
const SETTINGS = {
  clusterCIDR: '10.128.0.0/14',
  serviceCIDR: '172.30.0.0/16',
  clusterDomain: 'cluster.local',
  ipFamilies: 'IPv4',
} as const;
const kubelet = {
  ...DEFAULT_KUBELET_CONFIG,
  paths: { staticPods: '/pods' },
  listen: { address: '0.0.0.0', port: 10250 },
  eviction: { maxPodGraceSeconds: 0, pressureTransitionMs: 300_000 },
  shutdownPeriods: [],
} as unknown as KubeletConfig;

describe('the profile of a joined worker', () => {
  let api: TestServer;
  let root: string;
  let closing: (() => Promise<void>)[] = [];

  const client = async (name: string, ...groups: string[]) => {
    const pair = await api.user(name, ...groups);
    const made = createApiClient({
      server: api.url,
      ca: api.ca.certPem,
      cert: pair.certPem,
      key: pair.keyPem,
      userAgent: 'test',
      log: silentLog,
      clock,
    });
    closing.push(() => made.close());
    return made;
  };
  const publish = async (openshiftProfile: string): Promise<void> => {
    const maps = (await client('system:admin', 'system:masters')).resource(resources.configMaps);
    const data = { ...SETTINGS, openshiftProfile };
    await maps
      .create({ metadata: { ...MAP }, data })
      .catch(() => maps.patch(MAP.name, MAP.namespace, 'merge', { data }));
  };
  const joinedWith = (data: Readonly<Record<string, string>>, roles: readonly ('node' | 'master')[] = ['node']) =>
    writeJoined(join(root, 'etc/origin/node/joined.yaml'), {
      server: 'https://192.0.2.1:8443',
      apiServers: ['https://192.0.2.1:8443'],
      roles: [...roles],
      cluster: parseClusterSettings('test', data),
    });
  const bootstrap = (text: string): Promise<void> =>
    writeFile(join(root, 'etc/origin/bootstrap.yaml'), `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n${text}`, {
      mode: 0o600,
    });

  before(async () => {
    api = await startServer();
  });
  after(() => api.stop());
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'he-profile-'));
    await mkdir(join(root, 'etc/origin/node'), { recursive: true });
    closing.push(() => rm(root, { recursive: true, force: true }));
  });
  const close = async (): Promise<void> => {
    for (const each of closing.reverse()) await each();
    closing = [];
  };

  it('the profile of a joined worker comes from the join response, is stored, and can be overridden in the bootstrap file', async () => {
    await joinedWith({ ...SETTINGS, openshiftProfile: 'okd' });
    assert.equal((await loadSettings({ root })).openshift.profile, 'okd');
    await bootstrap('openshift: {domain: apps.lab.example}\n');
    assert.equal((await loadSettings({ root })).openshift.profile, 'okd');
    await bootstrap('openshift: {profile: kubernetes}\n');
    assert.equal((await loadSettings({ root })).openshift.profile, 'kubernetes');
    await rm(join(root, 'etc/origin/bootstrap.yaml'));
    // Responses of masters of other releases.
    for (const answer of [SETTINGS, { ...SETTINGS, openshiftProfile: 'microshift' }]) {
      await joinedWith(answer);
      assert.equal((await loadSettings({ root })).openshift.profile, 'kubernetes');
    }
    await joinedWith({ ...SETTINGS, openshiftProfile: 'okd' }, ['master', 'node']);
    const master = await loadSettings({ root });
    assert.equal(master.openshift.profile, 'kubernetes');
    assert.equal(publishedSettings(master)['openshiftProfile'], 'kubernetes');
    await close();
  });

  it("follows a change of the cluster's profile and updates the files of the host", async () => {
    await joinedWith({ ...SETTINGS, openshiftProfile: 'kubernetes' });
    const settings = await loadSettings({ root });
    const shown = (): Promise<string> =>
      readFile(join(root, 'etc/kubernetes/kubelet.conf'), 'utf8').catch(() => 'none');
    let restarts = 0;
    const restartKubelet = async (): Promise<void> => {
      restarts++;
      await followSettings(settings, kubelet, silentLog);
    };
    await followSettings(settings, kubelet, silentLog);
    assert.equal(await shown(), 'none');
    const node = await client('system:node:w1', 'system:nodes');
    const informers: InformerFactory = createInformerFactory({ client: node, log: silentLog, clock, random });
    closing.push(() => informers.stop());
    await publish('okd');
    followProfile({ settings, informers, restartKubelet, log: silentLog });
    await eventually(async () => /kind: KubeletConfiguration/.test(await shown()), 'kubelet.conf');
    assert.equal((await readJoined(settings.paths.joined))?.cluster.openshiftProfile, 'okd');
    assert.equal((await loadSettings({ root })).openshift.profile, 'okd');
    await publish('kubernetes');
    await eventually(async () => (await shown()) === 'none', 'no kubelet.conf');
    assert.equal(restarts, 2);
    await publish('unheard-of');
    await bootstrap('openshift: {profile: okd}\n');
    const own = await loadSettings({ root });
    assert.equal(await profileOfHost(own), 'okd');
    await publish('kubernetes');
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(await profileOfHost(own), 'okd');
    assert.equal(restarts, 2);
    await close();
  });
});
