/** Everything that a pod's specification can ask of its node, with real containers. */
import { after, before, describe } from 'node:test';
import { PodLab } from './pods/lab.ts';
import { containerOrderTests, hookTests, probeTests } from './pods/lifecycle.ts';

let lab: PodLab;
const current = (): PodLab => lab;

before(
  async () => {
    lab = await PodLab.create();
  },
  { timeout: 60_000 },
);

after(() => lab?.stop(), { timeout: 60_000 });

describe('pods', { concurrency: 4 }, () => {
  probeTests(current);
  hookTests(current);
  containerOrderTests(current);
});
