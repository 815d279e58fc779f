import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type PodReleaseServices, releasePod } from '../../../src/kubelet/pods/pod-release.ts';

const POD = { metadata: { name: 'p', namespace: 'default', uid: 'u' } };

/** Services whose volumes have a driver that does not answer. Records the calls that delete something. */
function createServices(): { readonly services: PodReleaseServices; readonly calls: string[] } {
  const calls: string[] = [];
  const services = {
    prober: { remove: () => {} },
    volumes: {
      tearDown: async (_uid: string, keepsDrivers = false) => {
        if (!keepsDrivers) throw new Error('driver not found');
        calls.push('unmount');
      },
    },
    cgroups: { removePod: async () => {} },
    devices: { release: async () => {} },
    directories: {
      removeVolumes: async () => calls.push('removeVolumes'),
      removePod: async () => calls.push('removePod'),
    },
  };
  return { services: services as unknown as PodReleaseServices, calls };
}

describe('release of a pod whose volumes cannot be released', () => {
  it('fails while the host runs, so that it is retried', async () => {
    const { services, calls } = createServices();
    await assert.rejects(
      releasePod(
        services,
        POD,
        () => 'records',
        () => false,
      ),
      /driver not found/,
    );
    assert.deepEqual(calls, []);
  });

  it('keeps the volumes and their records for the next start while the host stops', async () => {
    const { services, calls } = createServices();
    await releasePod(
      services,
      POD,
      () => 'records',
      () => true,
    );
    assert.deepEqual(calls, ['unmount']);
  });
});
