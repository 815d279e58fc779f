/** Volumes of CSI drivers and of the host's tools with real containers. */
import { after, before, describe } from 'node:test';
import { csiTests } from './pods/csi.ts';
import { PodLab } from './pods/lab.ts';
import { storageTests } from './pods/storage.ts';

let lab: PodLab;
const current = (): PodLab => lab;

before(
  async () => {
    lab = await PodLab.create();
  },
  { timeout: 90_000 },
);

after(() => lab?.stop(), { timeout: 90_000 });

describe('volumes', { concurrency: 3 }, () => {
  csiTests(current);
  storageTests(current);
});
